package podscope

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	evanphx "gopkg.in/evanphx/json-patch.v4" // the one in the API server
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/internal/scope"
	"github.com/kruisekit/kruisekit/write"
)

type configuration = admissionregistrationv1.MutatingWebhookConfiguration

func wanted(name, condition string) entry {
	return entry{
		Name: name, MatchConditions: []admissionregistrationv1.MatchCondition{{Name: scope.Selected, Expression: condition}},
		FailurePolicy: ptr.To(admissionregistrationv1.Fail), TimeoutSeconds: ptr.To[int32](10),
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist}}},
		ClientConfig:      admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Name: "s", Namespace: "n", Path: ptr.To("/mutate-pod")}},
	}
}

// written is a configuration after what a plan has for it, with a CA; also what it wrote.
func written(t *testing.T, have *configuration, want ...entry) (*configuration, []write.Op) {
	t.Helper()
	p, err := makePlan(have, want)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.patch) == 0 {
		return have, nil
	}
	p.trust([]byte("ca"))
	patch, err := write.Encode(p.patch)
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(have)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := evanphx.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	after, err := decoded.Apply(before)
	if err != nil {
		t.Fatalf("%v: %s", err, patch)
	}
	result := &configuration{}
	if err := json.Unmarshal(after, result); err != nil {
		t.Fatal(err)
	}
	return result, p.patch
}

func empty() *configuration {
	return &configuration{ObjectMeta: metav1.ObjectMeta{Name: "pods", ResourceVersion: "7"}}
}

// An entry comes with a CA, goes when it is not wanted, and others stay; what is as it should be is not written.
func TestEntries(t *testing.T) {
	foreign := wanted("theirs.example.com", "true")
	have := empty()
	have.Webhooks = []entry{foreign}
	steps := []struct {
		why  string
		want []entry
		have []string
	}{
		{"new ones come after those of others", []entry{wanted("mpod.kb.io", "a"), wanted("mpod-open.kb.io", "b")}, []string{"theirs.example.com", "mpod.kb.io=a", "mpod-open.kb.io=b"}},
		{"a condition is brought up to date", []entry{wanted("mpod.kb.io", "c"), wanted("mpod-open.kb.io", "b")}, []string{"theirs.example.com", "mpod.kb.io=c", "mpod-open.kb.io=b"}},
		{"one goes and one comes", []entry{wanted("mpod-0a1b2c3d.kb.io", "d"), wanted("mpod-open.kb.io", "b")}, []string{"theirs.example.com", "mpod-open.kb.io=b", "mpod-0a1b2c3d.kb.io=d"}},
		{"all go", nil, []string{"theirs.example.com"}},
	}
	for _, s := range steps {
		have, _ = written(t, have, s.want...)
		var got []string
		for _, w := range have.Webhooks {
			if w.Name == foreign.Name {
				got = append(got, w.Name)
				continue
			}
			got = append(got, w.Name+"="+w.MatchConditions[0].Expression)
			if string(w.ClientConfig.CABundle) != "ca" {
				t.Errorf("%s: %s has no CA", s.why, w.Name)
			}
		}
		if diff := cmp.Diff(s.have, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", s.why, diff)
		}
		if _, patch := written(t, have, s.want...); len(patch) > 0 {
			t.Errorf("%s: it is written once more: %v", s.why, patch)
		}
	}
}

// What others make of an entry stays, both when nothing changes and when the sets do.
func TestKept(t *testing.T) {
	have, _ := written(t, empty(), wanted("mpod.kb.io", "a"))
	w := &have.Webhooks[0]
	w.FailurePolicy, w.TimeoutSeconds = ptr.To(admissionregistrationv1.Ignore), ptr.To[int32](2)
	w.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"their": "choice"}}
	w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"also": "theirs"}}
	w.ClientConfig.CABundle = []byte("rotated")
	w.MatchConditions = append(w.MatchConditions, admissionregistrationv1.MatchCondition{Name: "theirs", Expression: "t"})
	w.MatchConditions[0].Expression = "their own"
	if _, patch := written(t, have, wanted("mpod.kb.io", "a")); len(patch) > 0 {
		t.Fatalf("somebody else's change is undone: %v", patch)
	}
	want := have.DeepCopy().Webhooks[0]
	want.MatchConditions[0].Expression = "b"
	after, patch := written(t, have, wanted("mpod.kb.io", "b"))
	if diff := cmp.Diff(want, after.Webhooks[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(patch) != 3 { // the test, the conditions, the record
		t.Errorf("more is written than changed: %v", patch)
	}

	// Another version of this program wants more of the entry itself. What others have asked for stays beside it.
	newer := wanted("mpod.kb.io", "b")
	newer.ClientConfig.Service.Path = ptr.To("/other")
	after, _ = written(t, after, newer)
	got := after.Webhooks[0]
	if *got.ClientConfig.Service.Path != "/other" || string(got.ClientConfig.CABundle) != "rotated" || *got.TimeoutSeconds != 2 {
		t.Errorf("%+v", got)
	}
	if s := got.NamespaceSelector; s.MatchLabels["their"] != "choice" || len(s.MatchExpressions) != 1 {
		t.Errorf("selector %v", s)
	}
}

// Where nothing is wanted and nothing was, nothing is written.
func TestNothing(t *testing.T) {
	if _, patch := written(t, empty()); len(patch) > 0 {
		t.Errorf("%v", patch)
	}
}

// An address has a CA of its own, which is part of what is wanted.
func TestAddress(t *testing.T) {
	w := wanted("mpod.kb.io", "a")
	w.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://localhost"), CABundle: []byte("first")}
	have, _ := written(t, empty(), w)
	w.ClientConfig.CABundle = []byte("second")
	if have, _ = written(t, have, w); string(have.Webhooks[0].ClientConfig.CABundle) != "second" {
		t.Errorf("the CA is %s", have.Webhooks[0].ClientConfig.CABundle)
	}
}

// A record that is not ours is as good as none, and so is a lost one: the entries are brought up to date.
func TestRecord(t *testing.T) {
	for _, record := range []string{"", "nonsense", `{"x":"y"}`, `["a"]`} {
		have, _ := written(t, empty(), wanted("mpod.kb.io", "a"), wanted("mpod-open.kb.io", "b"))
		have.Annotations = map[string]string{recordKey: record}
		after, _ := written(t, have, wanted("mpod.kb.io", "z"))
		if len(after.Webhooks) != 1 || after.Webhooks[0].MatchConditions[0].Expression != "z" {
			t.Errorf("record %q: %+v", record, after.Webhooks)
		}
	}
}

// A quarrel gets slower and slower, and what is wanted anew does not wait for it.
func TestPace(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	begin, writes := now, 0
	p := pace{least: between, most: 5 * time.Minute}
	for now.Sub(begin) < time.Hour {
		wait := p.wait("a", now)
		if wait > 5*time.Minute {
			t.Fatalf("a pause of %s", wait)
		}
		now = now.Add(max(wait, time.Millisecond))
		if wait <= 0 {
			p.wrote("a", now)
			writes++
		}
	}
	if writes < 10 || writes > 25 {
		t.Errorf("%d writes in an hour", writes)
	}
	if wait := p.wait("b", now.Add(time.Second)); wait > 0 {
		t.Errorf("something new waits %s", wait)
	}
	p.wrote("b", now)
	if wait := p.wait("b", now); wait < time.Minute {
		t.Errorf("the quarrel goes on, and the pause is %s", wait)
	}
	now = now.Add(time.Hour)
	p.wrote("b", now)
	if wait := p.wait("b", now); wait > time.Second {
		t.Errorf("after an hour of peace the pause is %s", wait)
	}
}
