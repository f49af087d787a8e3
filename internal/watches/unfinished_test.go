package watches_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/watches"
	"github.com/kruisekit/kruisekit/test/rig/apiserver"
)

type job = v1alpha1.EphemeralJob

// A list has the jobs of a namespace, or of all, that have neither ended nor are being deleted.
func TestUnfinished(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := apiserver.New(scheme, func() time.Time { return time.Unix(1_800_000_000, 0) })
	jobs := watches.Unfinished[job]{
		Kind: v1alpha1.GroupVersion.WithKind("EphemeralJob"),
		Over: func(j *job) bool { return j.Status.CompletionTime != nil },
	}
	if err := jobs.Index(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	end := metav1.NewTime(time.Unix(1, 0))
	for name, change := range map[string]func(*job){
		"web": func(*job) {}, "yard": func(j *job) { j.Namespace = "yard" },
		"ended": func(j *job) { j.Status.CompletionTime = &end },
		"deleted": func(j *job) {
			j.DeletionTimestamp, j.Finalizers = &end, []string{"example.com/hold"}
		},
	} {
		j := &job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
		change(j)
		if err := server.Put(j); err != nil {
			t.Fatal(err)
		}
	}
	for namespace, want := range map[string]string{"shop": "web", "yard": "yard", "attic": "", "": "web yard"} {
		all, err := jobs.List(t.Context(), server, namespace)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, j := range all {
			names = append(names, j.GetName())
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("namespace %q: %q, want %q", namespace, got, want)
		}
	}
}
