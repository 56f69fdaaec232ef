package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

type reconcileContext = context.Context

func TestTypedClientsSpeakProtobufInBothDirections(t *testing.T) {
	forms := &forms{seen: map[string]int{}}
	config := server.config()
	config.WrapTransport = forms.wrap
	c, err := client.New(config, client.Options{})
	must(t, err)
	namespace := space(t, c)
	p := pod(namespace, "p")
	must(t, c.Create(t.Context(), p))
	if p.Status.Phase != core.PodPending || p.Spec.RestartPolicy != core.RestartPolicyAlways {
		t.Errorf("the answer has not what the server fills in: %+v", p)
	}
	p.Labels = map[string]string{"a": "b"}
	must(t, c.Update(t.Context(), p))
	must(t, c.List(t.Context(), &core.PodList{}))
	if err := c.Create(t.Context(), pod(namespace, "p")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second pod of the name: %v", err)
	}
	bad := pod(namespace, "Bad_Name")
	var status *apierrors.StatusError
	if err := c.Create(t.Context(), bad); !errors.As(err, &status) || !apierrors.IsInvalid(err) ||
		len(status.ErrStatus.Details.Causes) == 0 || status.ErrStatus.Details.Causes[0].Field != "metadata.name" {
		t.Errorf("a bad name: %v", err)
	}
	must(t, c.Delete(t.Context(), p))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); !apierrors.IsNotFound(err) {
		t.Errorf("a deleted pod: %v", err)
	}
	for form := range forms.seen {
		if !strings.Contains(form, "vnd.kubernetes.protobuf") && !strings.Contains(form, "apidiscovery") {
			t.Errorf("%s, of %v", form, forms.seen)
		}
	}
}

func TestReviewsAreFoundByTheMapperAndAnswered(t *testing.T) {
	c := newClient(t)
	namespace := space(t, c)
	asked := &authorization.ResourceAttributes{Namespace: namespace, Verb: "list", Resource: "pods"}
	self := &authorization.SelfSubjectAccessReview{}
	self.Spec.ResourceAttributes = asked
	must(t, c.Create(t.Context(), self))
	local := &authorization.LocalSubjectAccessReview{ObjectMeta: meta.ObjectMeta{Namespace: namespace}}
	local.Spec.User, local.Spec.ResourceAttributes = "somebody", asked
	must(t, c.Create(t.Context(), local))
	if !self.Status.Allowed {
		t.Errorf("who may do everything may not: %+v", self.Status)
	}
	mapping, err := c.RESTMapper().RESTMapping(authorization.SchemeGroupVersion.WithKind("SelfSubjectRulesReview").GroupKind())
	must(t, err)
	if mapping.Resource.Resource != "selfsubjectrulesreviews" || mapping.Scope.Name() != apimeta.RESTScopeNameRoot {
		t.Errorf("mapped to %v, %s", mapping.Resource, mapping.Scope.Name())
	}
}

func TestServerSideApplyTellsOfConflictsAndTakesByForce(t *testing.T) {
	c := newClient(t)
	namespace := space(t, c)
	apply := func(owner client.FieldOwner, value string, options ...client.ApplyOption) error {
		config := applycore.ConfigMap("m", namespace).WithData(map[string]string{"key": value})
		return c.Apply(t.Context(), config, append(options, owner)...)
	}
	must(t, apply("first", "1"))
	must(t, apply("first", "2"))
	err := apply("second", "3")
	var status *apierrors.StatusError
	if !apierrors.IsConflict(err) || !errors.As(err, &status) ||
		status.ErrStatus.Details.Causes[0].Type != meta.CauseTypeFieldManagerConflict ||
		status.ErrStatus.Details.Causes[0].Field != ".data.key" {
		t.Fatalf("another owner's field: %v", err)
	}
	must(t, apply("second", "3", client.ForceOwnership))
	got := &core.ConfigMap{}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "m"}, got))
	if got.Data["key"] != "3" {
		t.Errorf("by force: %v", got.Data)
	}
	g := gang(namespace, "g", 2)
	must(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(g), client.FieldOwner("first")))
	g = gang(namespace, "g", 3)
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(g),
		client.FieldOwner("second")); !apierrors.IsConflict(err) {
		t.Errorf("another owner's field of a gang: %v", err)
	}
}

func TestSixteenWritersLoseNoIncrement(t *testing.T) {
	const writers, increments = 16, 10
	c := newClient(t)
	namespace := space(t, c)
	must(t, c.Create(t.Context(), configMap(namespace, "counter", map[string]string{"n": "0"})))
	key := client.ObjectKey{Namespace: namespace, Name: "counter"}
	backoff := retry.DefaultRetry
	backoff.Steps = 1000
	var all sync.WaitGroup
	conflicts := make(chan int, writers)
	for range writers {
		all.Go(func() {
			lost := 0
			for range increments {
				err := retry.RetryOnConflict(backoff, func() error {
					counter := &core.ConfigMap{}
					if err := c.Get(t.Context(), key, counter); err != nil {
						return err
					}
					n, _ := strconv.Atoi(counter.Data["n"])
					counter.Data["n"] = strconv.Itoa(n + 1)
					err := c.Update(t.Context(), counter)
					if apierrors.IsConflict(err) {
						lost++
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
			conflicts <- lost
		})
	}
	all.Wait()
	counter := &core.ConfigMap{}
	must(t, c.Get(t.Context(), key, counter))
	if counter.Data["n"] != strconv.Itoa(writers*increments) {
		t.Errorf("%s increments of %d", counter.Data["n"], writers*increments)
	}
}

func TestPagesTogetherAreTheList(t *testing.T) {
	c := newClient(t)
	namespace := space(t, c)
	want := []string{}
	for i := range 25 {
		want = append(want, fmt.Sprintf("m%02d", i))
		must(t, c.Create(t.Context(), configMap(namespace, want[i], nil)))
	}
	got := []string{}
	pages, next, version := 0, "", ""
	for {
		page := &core.ConfigMapList{}
		must(t, c.List(t.Context(), page, client.InNamespace(namespace), client.Limit(10), client.Continue(next)))
		for _, one := range page.Items {
			got = append(got, one.Name)
		}
		if pages++; pages == 1 {
			version = page.ResourceVersion
			must(t, c.Create(t.Context(), configMap(namespace, "m99", nil)))
			if page.RemainingItemCount == nil || *page.RemainingItemCount != 15 {
				t.Errorf("remaining: %v", page.RemainingItemCount)
			}
		} else if page.ResourceVersion != version {
			t.Errorf("page %d is of version %s, not %s", pages, page.ResourceVersion, version)
		}
		if next = page.Continue; next == "" {
			break
		}
	}
	if pages != 3 || !slices.Equal(got, want) {
		t.Errorf("%d pages: %v", pages, got)
	}
}

func TestDeleteCollectionTakesWhatIsSelectedOnly(t *testing.T) {
	c := newClient(t)
	namespace := space(t, c)
	for i := range 6 {
		one := configMap(namespace, fmt.Sprintf("m%d", i), nil)
		one.Labels = map[string]string{"even": strconv.FormatBool(i%2 == 0)}
		must(t, c.Create(t.Context(), one))
		g := gang(namespace, one.Name, 2)
		g.SetLabels(one.Labels)
		must(t, c.Create(t.Context(), g))
	}
	selected := []client.DeleteAllOfOption{client.InNamespace(namespace), client.MatchingLabels{"even": "true"}}
	must(t, c.DeleteAllOf(t.Context(), &core.ConfigMap{}, selected...))
	must(t, c.DeleteAllOf(t.Context(), gang("", "", 0), selected...))
	left := &core.ConfigMapList{}
	must(t, c.List(t.Context(), left, client.InNamespace(namespace)))
	gangs := &meta.PartialObjectMetadataList{}
	gangs.SetGroupVersionKind(gangKind.GroupVersion().WithKind("GangList"))
	must(t, c.List(t.Context(), gangs, client.InNamespace(namespace)))
	if len(left.Items) != 3 || len(gangs.Items) != 3 || left.Items[0].Name != "m1" || gangs.Items[0].Name != "m1" {
		t.Errorf("left: %v, %v", left.Items, gangs.Items)
	}
}

func TestRecordersWriteEventsAndCountThem(t *testing.T) {
	c := newClient(t)
	namespace := space(t, c)
	m := newManager(t, manager.Options{})
	start(t, m)
	p := pod(namespace, "p")
	must(t, c.Create(t.Context(), p))
	old, recorder := m.GetEventRecorderFor("old"), m.GetEventRecorder("new")
	for range 3 {
		old.Event(p, core.EventTypeNormal, "Tested", "by the old recorder")
	}
	recorder.Eventf(p, nil, core.EventTypeWarning, "Tested", "Testing", "by the %s recorder", "new")
	eventually(t, func() (bool, string) {
		all := &core.EventList{}
		must(t, c.List(t.Context(), all, client.InNamespace(namespace)))
		count := int32(0)
		for _, one := range all.Items {
			if one.Message == "by the old recorder" && one.InvolvedObject.UID == p.UID {
				count += one.Count
			}
		}
		return count == 3, fmt.Sprint(all.Items)
	})
	eventually(t, func() (bool, string) {
		all := &events.EventList{}
		must(t, c.List(t.Context(), all, client.InNamespace(namespace)))
		for _, one := range all.Items {
			if one.Note == "by the new recorder" && one.ReportingController == "new" {
				return true, ""
			}
		}
		return false, fmt.Sprint(all.Items)
	})
}

func TestServicesAreListedAsClusterInfoDoes(t *testing.T) {
	set, err := kubernetes.NewForConfig(server.config())
	must(t, err)
	all, err := set.CoreV1().Services("kube-system").List(t.Context(),
		meta.ListOptions{LabelSelector: "kubernetes.io/cluster-service=true"})
	must(t, err)
	if len(all.Items) != 0 {
		t.Errorf("services: %v", all.Items)
	}
}
