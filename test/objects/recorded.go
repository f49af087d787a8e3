package objects

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

// Recorded reads a list of objects that OpenKruise left in a cluster, from the recordings of test/compat. The test may
// run in any package of the module.
func Recorded(t testing.TB, file string, into any) {
	t.Helper()
	const recordings = "test/compat/testdata/recorded"
	root := "."
	for range 6 {
		if _, err := os.Stat(filepath.Join(root, recordings)); err == nil {
			break
		}
		root = filepath.Join(root, "..")
	}
	data, err := os.ReadFile(filepath.Join(root, recordings, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// Recorded stores the first object of the first list as OpenKruise left it, and all objects of the lists that it
// controls, with references of a version of the API. The clock moves to a time when they exist.
func (m *Model) Recorded(state, version string, lists ...client.ObjectList) (all []client.Object) {
	m.t.Helper()
	for _, list := range lists {
		kind, err := apiutil.GVKForObject(list, m.Server.Scheme())
		if err != nil {
			m.t.Fatal(err)
		}
		file := strings.ToLower(strings.TrimSuffix(kind.Kind, "List")) + "s"
		if strings.HasSuffix(kind.Group, ".kruise.io") {
			file += "." + kind.Version
		}
		Recorded(m.t, state+"/"+file+".yaml", list)
		err = meta.EachListItem(list, func(item runtime.Object) error {
			o, is := item.(client.Object)
			if !is {
				m.t.Fatalf("%T is no object", item)
			}
			if ref := metav1.GetControllerOf(o); len(all) > 0 && (ref == nil || ref.UID != all[0].GetUID()) {
				return nil
			}
			if len(all) > 0 {
				o.GetOwnerReferences()[0].APIVersion = "apps.kruise.io/" + version
			}
			if at := o.GetCreationTimestamp(); at.After(m.Clock) {
				m.Clock = at.Add(time.Hour)
			}
			all = append(all, o)
			return m.Server.Put(o)
		})
		if err != nil {
			m.t.Fatal(err)
		}
	}
	if len(all) < 2 {
		m.t.Fatalf("%s has %d recorded objects", state, len(all))
	}
	m.Server.Requests()
	return all
}
