package imagelistpulljob

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
	"github.com/kruisekit/kruisekit/write"
)

// A list that the webhook would reject makes no jobs; the faults themselves are in the tables of the package
// validation.
func TestInvalid(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`"nginx:%d",`, 256), ",")
	numbers := make([]any, 256)
	for i := range numbers {
		numbers[i] = i
	}
	secrets := make([]string, 33)
	for i := range secrets {
		secrets[i] = fmt.Sprint("s", i)
	}
	for name, c := range map[string]struct{ spec, want string }{
		"valid":         {`{"images":["a"]}`, ""},
		"no images":     {`{"images":[]}`, "spec.images: Required"},
		"many images":   {`{"images":[` + fmt.Sprintf(many, numbers...) + `]}`, "spec.images: Too many"},
		"twice":         {`{"images":["a","b","a"]}`, "spec.images[2]: Duplicate"},
		"one bad image": {`{"images":["Not An Image","a",""]}`, ""},
		"bad and twice": {`{"images":["Not An Image","a","a"]}`, "spec.images[2]: Duplicate"},
		"deadline": {
			`{"images":["a"],"completionPolicy":{"type":"Always","activeDeadlineSeconds":599}}`,
			"spec.completionPolicy.activeDeadlineSeconds: Invalid",
		},
		"never ends": {
			`{"images":["a"],"completionPolicy":{"type":"Never","ttlSecondsAfterFinished":1}}`,
			"spec.completionPolicy.ttlSecondsAfterFinished: Forbidden",
		},
		"never, timed": {
			`{"images":["a"],"completionPolicy":{"type":"Never","activeDeadlineSeconds":1}}`,
			"spec.completionPolicy.activeDeadlineSeconds: Forbidden",
		},
		"policy": {
			`{"images":["a"],"completionPolicy":{"type":"Sometimes"}}`, "spec.completionPolicy.type: Unsupported",
		},
		"parallelism": {`{"images":["a"],"parallelism":"50%"}`, "spec.parallelism: Invalid"},
		"negative":    {`{"images":["a"],"parallelism":-1}`, "spec.parallelism: Invalid"},
		"selectors":   {`{"images":["a"],"selector":{},"podSelector":{}}`, "spec.selector: Forbidden"},
		"odd selector": {
			`{"images":["a"],"selector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}`,
			"spec.selector.matchExpressions[0].operator: Invalid",
		},
		"odd pods": {
			`{"images":["a"],"podSelector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}`,
			"spec.podSelector.matchExpressions[0].operator: Invalid",
		},
		"names twice": {`{"images":["a"],"selector":{"names":["n","n"]}}`, "spec.selector.names[1]: Duplicate"},
		"names, labels": {
			`{"images":["a"],"selector":{"names":["n"],"matchLabels":{"a":"b"}}}`, "spec.selector.names: Forbidden",
		},
		"many secrets":   {`{"images":["a"],"pullSecrets":["` + strings.Join(secrets, `","`) + `"]}`, ""},
		"long sandbox":   {`{"images":["a"],"sandboxConfig":{"annotations":{"a":"` + strings.Repeat("x", 20000) + `"}}}`, ""},
		"a list without": {`{}`, "spec.images: Required"},
	} {
		t.Run(name, func(t *testing.T) {
			list := &v1beta1.ImageListPullJob{}
			if err := json.Unmarshal([]byte(`{"spec":`+c.spec+`}`), list); err != nil {
				t.Fatal(err)
			}
			list.Default()
			err := invalid(list)
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// The label comes first, and nothing follows where it fails. Of a job whose name is taken the pass asks who has the
// name.
func TestPass(t *testing.T) {
	twice := "Patch, " + strings.Repeat("Create, ", 2) + "Patch status"
	jobs := v1beta1.GroupVersion.WithResource("imagepulljobs").GroupResource()
	taken, missing := apierrors.NewAlreadyExists(jobs, "j"), apierrors.NewNotFound(jobs, "j")
	owner := *metav1.NewControllerRef(&v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{UID: "uid-ahead"}}, gvk())
	own, foreign := stored.Untyped(jobKind()), stored.Untyped(jobKind())
	own.SetOwnerReferences([]metav1.OwnerReference{owner})
	for name, c := range map[string]struct {
		errs    map[write.Verb]error
		found   *unstructured.Unstructured
		want    string
		created int
		met     bool
		fails   string
	}{
		"all succeeds": {
			want: twice, created: 2,
		},
		"the label is refused": {
			errs: map[write.Verb]error{write.Patch: missing}, want: "Patch", fails: "label list",
		},
		"creations are refused": {
			errs: map[write.Verb]error{write.Create: apierrors.NewBadRequest("no")},
			want: twice, fails: "create job of image a",
		},
		"an earlier process has created the jobs": {
			errs: map[write.Verb]error{write.Create: taken}, found: own,
			want: "Patch, Create, Get, Create, Get, Patch status", met: true,
		},
		"the jobs have gone since": {
			errs: map[write.Verb]error{write.Create: taken, write.Get: missing},
			want: "Patch, Create, Get, Create, Get, Patch status", met: true,
		},
		"another owner has the names": {
			errs: map[write.Verb]error{write.Create: taken}, found: foreign,
			want: "Patch, Create, Get, Create, Get, Patch status", fails: "is taken",
		},
	} {
		t.Run(name, func(t *testing.T) {
			list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ahead", UID: "uid-ahead"}}
			list.Spec.Images = []string{"a", "b"}
			list.Default()
			p := newPlan(&snapshot{list: list, now: time.Unix(0, 0)}, stored.Kind{GVK: gvk()}, stored.Kind{GVK: jobKind()})
			pass := p.pass()
			var sent []string
			answer := func(w *write.Write) []*write.Write {
				sent = append(sent, strings.TrimSpace(string(w.Verb)+" "+w.Subresource))
				if w.Verb == write.Get {
					return pass.Answer(p.now, w, c.found, c.errs[w.Verb])
				}
				return pass.Answer(p.now, w, own, c.errs[w.Verb])
			}
			for stage := pass.Next(); len(stage) > 0; stage = pass.Next() {
				for _, w := range stage {
					for _, follows := range answer(w) {
						answer(follows)
					}
				}
			}
			failed := ""
			if err := pass.Err(); err != nil {
				failed = err.Error()
			}
			if got := strings.Join(sent, ", "); got != c.want || p.created != c.created || p.met != c.met {
				t.Errorf("sent %s, created %d, met %t", got, p.created, p.met)
			}
			if (failed != "") != (c.fails != "") || !strings.Contains(failed, c.fails) {
				t.Errorf("got %q", failed)
			}
		})
	}
}
