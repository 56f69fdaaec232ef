package manager

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	resource "k8s.io/api/resource/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestOneOfTwoManagersLeadsAndTheOtherFollowsIt(t *testing.T) {
	c := newClient(t)
	namespace := space(t, c)
	duration, deadline, retry := 5*time.Second, 4*time.Second, 500*time.Millisecond
	elected := func() ctrl.Manager {
		return newManager(t, manager.Options{
			LeaderElection: true, LeaderElectionID: "election", LeaderElectionNamespace: namespace,
			LeaseDuration: &duration, RenewDeadline: &deadline, RetryPeriod: &retry,
			LeaderElectionReleaseOnCancel: true,
		})
	}
	first, second := elected(), elected()
	stopFirst := start(t, first)
	select {
	case <-first.Elected():
	case <-time.After(patience):
		t.Fatal("nobody leads")
	}
	start(t, second)
	lease := coordination.Lease{}
	key := client.ObjectKey{Namespace: namespace, Name: "election"}
	must(t, c.Get(t.Context(), key, &lease))
	holder, renewed := *lease.Spec.HolderIdentity, lease.Spec.RenewTime
	eventually(t, func() (bool, string) {
		must(t, c.Get(t.Context(), key, &lease))
		return renewed.Before(lease.Spec.RenewTime), "the lease is not renewed"
	})
	select {
	case <-second.Elected():
		t.Fatal("two lead")
	default:
	}
	stopFirst()
	select {
	case <-second.Elected():
	case <-time.After(patience):
		t.Fatal("nobody follows")
	}
	must(t, c.Get(t.Context(), key, &lease))
	if *lease.Spec.HolderIdentity == holder {
		t.Errorf("the lease is still held by %s", holder)
	}
}

// told collects what informers say, as "add pod/a".
type told struct {
	mutex sync.Mutex
	seen  map[string]int
}

func (told *told) follow(t *testing.T, c cache.Cache, object client.Object, word string) {
	t.Helper()
	informer, err := c.GetInformer(t.Context(), object)
	must(t, err)
	note := func(verb string, object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		told.mutex.Lock()
		defer told.mutex.Unlock()
		told.seen[fmt.Sprintf("%s %s/%s", verb, word, object.(meta.Object).GetName())]++
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { note("add", object) },
		UpdateFunc: func(_, object any) { note("update", object) },
		DeleteFunc: func(object any) { note("delete", object) },
	})
	must(t, err)
}

func (told *told) await(t *testing.T, all ...string) {
	t.Helper()
	eventually(t, func() (bool, string) {
		told.mutex.Lock()
		defer told.mutex.Unlock()
		for _, one := range all {
			if told.seen[one] == 0 {
				return false, fmt.Sprintf("%q; told so far: %v", one, told.seen)
			}
		}
		return true, ""
	})
}

func TestInformersTellOfTypedUnstructuredAndPartialObjects(t *testing.T) {
	c := newClient(t)
	namespace := space(t, c)
	m := newManager(t, manager.Options{
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	start(t, m)
	partial := &meta.PartialObjectMetadata{}
	partial.SetGroupVersionKind(gangKind)
	partialPod := &meta.PartialObjectMetadata{}
	partialPod.SetGroupVersionKind(core.SchemeGroupVersion.WithKind("Pod"))
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(gangKind)
	told := &told{seen: map[string]int{}}
	must(t, c.Create(t.Context(), pod(namespace, "before")))
	told.follow(t, m.GetCache(), &core.Pod{}, "pod")
	told.follow(t, m.GetCache(), &resource.ResourceClaim{}, "claim")
	told.follow(t, m.GetCache(), untyped, "gang")
	told.follow(t, m.GetCache(), partial, "gang metadata")
	told.follow(t, m.GetCache(), partialPod, "pod metadata")
	told.await(t, "add pod/before", "add pod metadata/before")

	claim := &resource.ResourceClaim{ObjectMeta: meta.ObjectMeta{Namespace: namespace, Name: "c"}}
	claim.Spec.Devices.Requests = []resource.DeviceRequest{{Name: "chips",
		Exactly: &resource.ExactDeviceRequest{DeviceClassName: "neuron.aws.com",
			AllocationMode: resource.DeviceAllocationModeExactCount, Count: 2}}}
	p, g := pod(namespace, "p"), gang(namespace, "g", 4)
	for _, object := range []client.Object{p, claim, g} {
		must(t, c.Create(t.Context(), object))
	}
	told.await(t, "add pod/p", "add claim/c", "add gang/g", "add gang metadata/g", "add pod metadata/p")
	for _, object := range []client.Object{p, claim, g} {
		base := object.DeepCopyObject().(client.Object)
		object.SetLabels(map[string]string{"colour": "red"})
		must(t, c.Patch(t.Context(), object, client.MergeFrom(base)))
	}
	told.await(t, "update pod/p", "update claim/c", "update gang/g", "update gang metadata/g")

	cached := &core.Pod{}
	must(t, m.GetCache().Get(t.Context(), client.ObjectKeyFromObject(p), cached))
	if cached.Spec.Containers[0].Image != "train" || cached.Labels["colour"] != "red" {
		t.Errorf("the cached pod is another: %v", cached)
	}
	for _, object := range []client.Object{p, claim, g} {
		must(t, c.Delete(t.Context(), object))
	}
	told.await(t, "delete pod/p", "delete claim/c", "delete gang/g", "delete gang metadata/g")
}

func TestAnInformerGoesOnAfterTheServerStartsAgain(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		c := newClient(t)
		namespace := space(t, c)
		m := newManager(t, manager.Options{
			Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		})
		stop := start(t, m)
		told := &told{seen: map[string]int{}}
		told.follow(t, m.GetCache(), &core.ConfigMap{}, "map")
		must(t, c.Create(t.Context(), configMap(namespace, "kept", nil)))
		must(t, c.Create(t.Context(), configMap(namespace, "gone", nil)))
		told.await(t, "add map/kept", "add map/gone")
		server.stop(signal)
		must(t, server.start())
		must(t, c.Delete(t.Context(), configMap(namespace, "gone", nil)))
		must(t, c.Create(t.Context(), configMap(namespace, "new", nil)))
		told.await(t, "delete map/gone", "add map/new")
		if n := told.seen["add map/kept"]; n != 1 {
			t.Errorf("%v: map/kept was added %d times", signal, n)
		}
		stop()
	}
}

func TestAControllerReconcilesWhatItOwns(t *testing.T) {
	c := newClient(t)
	namespace := space(t, c)
	m := newManager(t, manager.Options{
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(gangKind)
	// Every gang gets a ConfigMap that says how many members it has.
	must(t, ctrl.NewControllerManagedBy(m).Named("members").For(untyped).Owns(&core.ConfigMap{}).
		Complete(reconcile.Func(func(ctx reconcileContext, request reconcile.Request) (reconcile.Result, error) {
			g := untyped.DeepCopy()
			if err := m.GetClient().Get(ctx, request.NamespacedName, g); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			members, _, _ := unstructured.NestedInt64(g.Object, "spec", "members")
			notes := configMap(request.Namespace, request.Name, nil)
			_, err := ctrl.CreateOrUpdate(ctx, m.GetClient(), notes, func() error {
				notes.Data = map[string]string{"members": fmt.Sprint(members)}
				return ctrl.SetControllerReference(g, notes, m.GetScheme())
			})
			return reconcile.Result{}, err
		})))
	start(t, m)
	g := gang(namespace, "g", 2)
	must(t, c.Create(t.Context(), g))
	says := func(members string) {
		t.Helper()
		eventually(t, func() (bool, string) {
			notes := core.ConfigMap{}
			err := c.Get(t.Context(), client.ObjectKeyFromObject(g), &notes)
			return err == nil && notes.Data["members"] == members, fmt.Sprintf("%s: %v %v", members, notes.Data, err)
		})
	}
	says("2")
	base := g.DeepCopy()
	unstructured.SetNestedField(g.Object, int64(3), "spec", "members")
	must(t, c.Patch(t.Context(), g, client.MergeFrom(base)))
	says("3")
	must(t, c.Delete(t.Context(), configMap(namespace, "g", nil)))
	says("3")
}
