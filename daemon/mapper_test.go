package daemon

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	appsv1beta1 "github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/binding"
)

// The cache of a node can be made before the kinds are installed, and does not make the parts believe that they are.
func TestCacheBeforeKinds(t *testing.T) {
	served := meta.NewDefaultRESTMapper(nil)
	served.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	o, err := ManagerOptions("node-a", Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.Cache.Scheme, o.Cache.Mapper = o.Scheme, served
	if _, err := o.NewCache(&rest.Config{Host: "http://127.0.0.1:1"}, o.Cache); err != nil {
		t.Errorf("%v, want a cache", err)
	}
	if installed, err := binding.Installed(served, appsv1beta1.GroupVersion.WithKind("NodeImage")); installed ||
		err != nil {
		t.Errorf("installed %t, %v", installed, err)
	}
	o.Cache.Mapper = meta.NewDefaultRESTMapper(nil)
	if _, err := o.NewCache(&rest.Config{Host: "http://127.0.0.1:1"}, o.Cache); err == nil {
		t.Error("a cluster without pods is accepted")
	}
}
