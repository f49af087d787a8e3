package imagelistpulljob

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
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
		"many secrets": {
			`{"images":["a"],"pullSecrets":["` + strings.Join(secrets, `","`) + `"]}`, "spec.pullSecrets: Too many",
		},
		"long sandbox": {
			`{"images":["a"],"sandboxConfig":{"annotations":{"a":"` + strings.Repeat("x", 20000) + `"}}}`,
			"spec.sandboxConfig: Invalid",
		},
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

// The name of a job follows from its list, template and image, so that a job that exists is met.
func TestCreations(t *testing.T) {
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ahead", UID: "uid-ahead"}}
	list.Spec.Images = []string{"a", "b"}
	list.Default()
	s := &snapshot{list: list, now: time.Unix(0, 0)}
	p := newPlan(s)
	first, err := p.creations()
	if err != nil || len(first) != 2 || first[0].GetName() == first[1].GetName() || p.met ||
		p.label(stored.Kind{}) == nil {
		t.Fatalf("creates %v, met %t, %v", first, p.met, err)
	}
	leaving := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: first[0].GetName(), DeletionTimestamp: &metav1.Time{Time: s.now},
	}}
	s.jobs = []*v1beta1.ImagePullJob{leaving}
	p = newPlan(s)
	again, err := p.creations()
	if err != nil || len(again) != 1 || again[0].GetName() != first[1].GetName() || !p.met {
		t.Errorf("while a job leaves: creates %v, met %t, %v", again, p.met, err)
	}
	list.Labels = map[string]string{"controller-revision-hash": p.Hash}
	if w := newPlan(s).label(stored.Kind{}); w != nil {
		t.Errorf("the label is written again: %v", w)
	}
}
