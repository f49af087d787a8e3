package apitest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// resource is one that the server serves.
type resource struct {
	metav1.APIResource
	kind schema.GroupVersionKind
}

func (r resource) root() string {
	if r.kind.Group == "" {
		return "/api/" + r.kind.Version
	}
	return "/apis/" + r.kind.Group + "/" + r.kind.Version
}

// path returns the path of the collection in a namespace.
func (r resource) path(namespace string) string {
	if r.Namespaced {
		return r.root() + "/namespaces/" + namespace + "/" + r.Name
	}
	return r.root() + "/" + r.Name
}

// resources returns those of Kubernetes that commands use, and those of the CRDs in one version, where they have it.
func resources(t testing.TB, version string) []resource {
	t.Helper()
	all := []resource{}
	builtIn := func(group, version, kind, name string, namespaced bool, short ...string) {
		all = append(all, resource{
			metav1.APIResource{
				Name: name, SingularName: strings.ToLower(kind), Namespaced: namespaced, Kind: kind, ShortNames: short,
				Verbs: metav1.Verbs{"get", "list", "watch", "create", "patch", "update", "delete"},
			},
			schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
		})
	}
	builtIn("", "v1", "Pod", "pods", true, "po")
	builtIn("", "v1", "Service", "services", true, "svc")
	builtIn("", "v1", "Event", "events", true)
	builtIn("", "v1", "Node", "nodes", false)
	builtIn("", "v1", "Namespace", "namespaces", false)
	builtIn("", "v1", "ConfigMap", "configmaps", true)
	builtIn("", "v1", "Secret", "secrets", true)
	builtIn("apps", "v1", "Deployment", "deployments", true, "deploy")
	builtIn("apps", "v1", "StatefulSet", "statefulsets", true)
	builtIn("apps", "v1", "DaemonSet", "daemonsets", true)
	builtIn("apps", "v1", "ReplicaSet", "replicasets", true)
	builtIn("apps", "v1", "ControllerRevision", "controllerrevisions", true)
	builtIn("batch", "v1", "Job", "jobs", true)
	builtIn("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true, "hpa")
	builtIn("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true, "hpa")
	builtIn("rollouts.kruise.io", "v1beta1", "Rollout", "rollouts", true)
	definitions, err := crds()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range definitions {
		for _, v := range crd.Spec.Versions {
			other := slices.ContainsFunc(crd.Spec.Versions, func(o apiextensionsv1.CustomResourceDefinitionVersion) bool {
				return o.Name == version
			})
			if v.Name == version || !other {
				n := crd.Spec.Names
				builtIn(crd.Spec.Group, v.Name, n.Kind, n.Plural, crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
					n.ShortNames...)
			}
		}
	}
	return all
}

// crds are read once: they are large.
var crds = sync.OnceValues(func() ([]apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(CRDs(), "*.kruise.io_*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no CRDs in %s, %w", CRDs(), err)
	}
	all := make([]apiextensionsv1.CustomResourceDefinition, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := yaml.Unmarshal(data, &all[i]); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
	}
	return all, nil
})

// CRDs returns the directory of the CRDs, seen from a package below the module.
func CRDs() string {
	dir := ".."
	for range 5 {
		if _, err := os.Stat(filepath.Join(dir, "config/crd/bases")); err == nil {
			break
		}
		dir = filepath.Join("..", dir)
	}
	return filepath.Join(dir, "config/crd/bases")
}

// discover returns the answer to a request for discovery: nil for another path.
func (s *Server) discover(path string) any {
	switch path {
	case "/version":
		return map[string]string{"major": "1", "minor": "34", "gitVersion": "v1.34.1"}
	case "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case "/apis":
		return s.groups()
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, r := range s.resources {
		if r.root() != path {
			continue
		}
		list.GroupVersion = r.kind.GroupVersion().String()
		list.APIResources = append(list.APIResources, r.APIResource, metav1.APIResource{
			Name: r.Name + "/scale", Namespaced: r.Namespaced, Kind: "Scale", Group: "autoscaling", Version: "v1",
			Verbs: metav1.Verbs{"get", "update", "patch"},
		})
	}
	if list.GroupVersion == "" {
		return nil
	}
	return list
}

func (s *Server) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, r := range s.resources {
		if r.kind.Group == "" {
			continue
		}
		at := slices.IndexFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == r.kind.Group })
		if at < 0 {
			at = len(list.Groups)
			list.Groups = append(list.Groups, metav1.APIGroup{Name: r.kind.Group})
		}
		version := metav1.GroupVersionForDiscovery{
			GroupVersion: r.kind.GroupVersion().String(), Version: r.kind.Version,
		}
		g := &list.Groups[at]
		if !slices.Contains(g.Versions, version) {
			g.Versions = append(g.Versions, version)
			slices.SortFunc(g.Versions, func(a, b metav1.GroupVersionForDiscovery) int {
				return -strings.Compare(a.Version, b.Version) // v1beta1 before v1alpha1
			})
			g.PreferredVersion = g.Versions[0]
		}
	}
	return list
}

// kindAt returns the kind of the objects of a collection.
func (s *Server) kindAt(path string) (schema.GroupVersionKind, bool) {
	for _, r := range s.resources {
		if strings.HasPrefix(path, r.root()+"/") && strings.HasSuffix(path, "/"+r.Name) {
			return r.kind, true
		}
	}
	return schema.GroupVersionKind{}, false
}

// collects reports whether a collection of all namespaces has an object.
func collects(path, at string, o *unstructured.Unstructured) bool {
	return strings.Replace(at, "/namespaces/"+o.GetNamespace(), "", 1) == path+"/"+o.GetName()
}
