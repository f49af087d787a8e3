package client_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	appsv1alpha1 "github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	apply "github.com/kruisekit/kruisekit/api/client/applyconfiguration/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/client/clientset/versioned"
	"github.com/kruisekit/kruisekit/api/client/clientset/versioned/fake"
	"github.com/kruisekit/kruisekit/api/client/clientset/versioned/scheme"
	typedv1alpha1 "github.com/kruisekit/kruisekit/api/client/clientset/versioned/typed/apps/v1alpha1"
	typedv1beta1 "github.com/kruisekit/kruisekit/api/client/clientset/versioned/typed/apps/v1beta1"
	typedpolicyv1alpha1 "github.com/kruisekit/kruisekit/api/client/clientset/versioned/typed/policy/v1alpha1"
	"github.com/kruisekit/kruisekit/api/client/informers/externalversions"
	informers "github.com/kruisekit/kruisekit/api/client/informers/externalversions/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/api/client/informers/externalversions/internalinterfaces"
	listers "github.com/kruisekit/kruisekit/api/client/listers/apps/v1alpha1"
	policyv1alpha1 "github.com/kruisekit/kruisekit/api/policy/v1alpha1"
)

// A program of the reference's clients finds these names. The test is that they compile.
var (
	_ versioned.Interface                 = (*versioned.Clientset)(nil)
	_ versioned.Interface                 = (*fake.Clientset)(nil)
	_ typedv1alpha1.AppsV1alpha1Interface = (*typedv1alpha1.AppsV1alpha1Client)(nil)
	_ typedv1beta1.AppsV1beta1Interface   = (*typedv1beta1.AppsV1beta1Client)(nil)
	_ typedpolicyv1alpha1.PodUnavailableBudgetInterface
	_ typedv1alpha1.CloneSetsGetter            = typedv1alpha1.AppsV1alpha1Interface(nil)
	_ typedv1alpha1.CloneSetExpansion          = typedv1alpha1.CloneSetInterface(nil)
	_ internalinterfaces.SharedInformerFactory = externalversions.SharedInformerFactory(nil)
	_ internalinterfaces.TweakListOptionsFunc  = func(*metav1.ListOptions) {}
	_ internalinterfaces.NewInformerFunc

	_ func(*rest.Config) (*versioned.Clientset, error) = versioned.NewForConfig
	_ func(*rest.Config) *versioned.Clientset          = versioned.NewForConfigOrDie
	_ func(rest.Interface) *versioned.Clientset        = versioned.New
	_                                                  = versioned.NewForConfigAndClient
	_                                                  = externalversions.NewFilteredSharedInformerFactory
	_                                                  = externalversions.NewSharedInformerFactoryWithOptions
	_                                                  = externalversions.WithCustomResyncConfig
	_                                                  = externalversions.WithTweakListOptions
	_                                                  = externalversions.WithNamespace
	_                                                  = externalversions.WithTransform
	_                                                  = informers.NewCloneSetInformer
	_                                                  = informers.NewFilteredCloneSetInformer
	_                                                  = listers.NewCloneSetLister
	_                                                  = scheme.AddToScheme
)

func cloneSet() *appsv1alpha1.CloneSet {
	return &appsv1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{
		"app": "web",
	}}}
}

// The fake keeps objects of both versions and scopes, and its informers list them.
func TestFake(t *testing.T) {
	clients := fake.NewSimpleClientset(cloneSet(),
		&appsv1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "proxy"}},
		&policyv1alpha1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}})
	if _, err := clients.AppsV1alpha1().SidecarSets().Get(t.Context(), "proxy", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	budgets, err := clients.PolicyV1alpha1().PodUnavailableBudgets("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(budgets.Items) != 1 {
		t.Errorf("%v, %v", budgets, err)
	}
	set := &appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	if _, err := clients.AppsV1beta1().StatefulSets("shop").Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	_, err = clients.AppsV1beta1().StatefulSets("yard").Get(t.Context(), "db", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("another namespace: %v", err)
	}

	factory := externalversions.NewSharedInformerFactory(clients, time.Minute)
	sets := factory.Apps().V1alpha1().CloneSets()
	informer, lister := sets.Informer(), sets.Lister()
	ctx, stop := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer stop()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	found, err := lister.CloneSets("shop").List(labels.SelectorFromSet(labels.Set{"app": "web"}))
	if err != nil || len(found) != 1 || found[0].Name != "web" {
		t.Errorf("%v, %v", found, err)
	}
}

// An apply configuration has the fields that were set, and no other: an apply owns what it has.
func TestApplyConfiguration(t *testing.T) {
	set := apply.CloneSet("web", "shop").WithSpec(apply.CloneSetSpec().WithReplicas(2).
		WithSelector(metaapply.LabelSelector().WithMatchLabels(map[string]string{"app": "web"})).
		WithTemplate(coreapply.PodTemplateSpec().WithLabels(map[string]string{"app": "web"}).WithSpec(
			coreapply.PodSpec().WithContainers(coreapply.Container().WithName("app").WithImage("app:1")))).
		WithUpdateStrategy(apply.CloneSetUpdateStrategy().WithRollingUpdate(
			apply.RollingUpdateCloneSetStrategy().WithPodUpdatePolicy(appsv1beta1.InPlaceOnlyCloneSetPodUpdateStrategyType))))
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"CloneSet","apiVersion":"apps.kruise.io/v1beta1","metadata":{"name":"web","namespace":"shop"},` +
		`"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},` +
		`"spec":{"containers":[{"name":"app","image":"app:1"}]}},` +
		`"updateStrategy":{"rollingUpdate":{"podUpdatePolicy":"InPlaceOnly"}}}}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
	sidecar := apply.SidecarContainer().WithName("proxy").WithImage("proxy:1")
	if text, err = json.Marshal(sidecar); err != nil || string(text) != `{"name":"proxy","image":"proxy:1"}` {
		t.Errorf("%s, %v", text, err)
	}
}
