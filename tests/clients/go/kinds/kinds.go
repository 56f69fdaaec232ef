// Package kinds names the built-in kinds that the standalone API server serves, or takes as a body,
// as Go types: the roots of the generated messages and the subjects of the golden vectors.
package kinds

import (
	"runtime/debug"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	policy "k8s.io/api/policy/v1"
	resource "k8s.io/api/resource/v1"
	resourcebeta "k8s.io/api/resource/v1beta1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Version returns that of the Kubernetes modules in go.mod, as the program was built with them.
func Version() string {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == "k8s.io/api" {
			return module.Version
		}
	}
	panic("built without k8s.io/api")
}

// Objects returns an empty object of each kind.
func Objects() []runtime.Object {
	return []runtime.Object{
		&core.Pod{}, &core.Node{}, &core.Namespace{}, &core.Event{}, &core.ConfigMap{},
		&core.Secret{}, &core.Service{}, &core.ServiceAccount{}, &core.ComponentStatus{},
		&core.PersistentVolume{}, &core.PersistentVolumeClaim{}, &core.Binding{},
		&core.Endpoints{},
		&apps.Deployment{}, &apps.ReplicaSet{}, &apps.StatefulSet{}, &apps.DaemonSet{},
		&apps.ControllerRevision{}, &batch.Job{},
		&coordination.Lease{}, &events.Event{},
		&resource.ResourceSlice{}, &resource.ResourceClaim{}, &resource.ResourceClaimTemplate{},
		&resource.DeviceClass{}, &resourcebeta.DeviceClass{}, &scheduling.PriorityClass{},
		&storage.StorageClass{},
		&admissionregistration.MutatingWebhookConfiguration{}, &admissionregistration.ValidatingWebhookConfiguration{},
		&apiextensions.CustomResourceDefinition{},
		&authorization.SelfSubjectAccessReview{}, &authorization.SubjectAccessReview{},
		&authorization.LocalSubjectAccessReview{}, &authorization.SelfSubjectRulesReview{},
		&authentication.SelfSubjectReview{}, &authentication.TokenReview{}, &authentication.TokenRequest{}, &autoscaling.Scale{}, &policy.Eviction{}, &policy.PodDisruptionBudget{},
		&meta.Status{}, &meta.DeleteOptions{}, &meta.PartialObjectMetadata{},
	}
}

// Parts returns messages that are no kinds, but that the protocol is made of.
func Parts() []any {
	return []any{meta.ListMeta{}, meta.WatchEvent{}, runtime.Unknown{}}
}

// Scheme knows the kinds.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		core.AddToScheme, apps.AddToScheme, batch.AddToScheme, coordination.AddToScheme, events.AddToScheme, resource.AddToScheme,
		resourcebeta.AddToScheme, scheduling.AddToScheme, storage.AddToScheme, apiextensions.AddToScheme,
		admissionregistration.AddToScheme,
		authorization.AddToScheme, authentication.AddToScheme, autoscaling.AddToScheme, policy.AddToScheme, meta.AddMetaToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	meta.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme
}
