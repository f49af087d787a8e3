package nodepodprobe

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/write"
)

// A NodePodProbe is deleted once the API server answers that its node is gone.
func TestRemoval(t *testing.T) {
	missing := apierrors.NewNotFound(corev1.Resource("nodes"), "n1")
	deleting := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", DeletionTimestamp: &metav1.Time{}}}
	for name, c := range map[string]struct {
		why     string
		node    *corev1.Node
		answer  write.Object
		err     error
		asks    bool
		deletes bool
		fails   bool
	}{
		"a node that is being deleted": {why: "the cache has it", node: deleting, deletes: true},
		"a node that is gone":          {why: "the API server knows", err: missing, asks: true, deletes: true},
		"a node that terminates":       {why: "the cache is ahead", answer: deleting, asks: true, deletes: true},
		"a node that is there":         {why: "the cache lags behind", answer: &corev1.Node{}, asks: true},
		"no answer":                    {why: "it is asked again", err: errors.New("reset"), asks: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			probes := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u"}}
			p, err := newPlan(&snapshot{name: "n1", node: c.node, probes: probes})
			if err != nil {
				t.Fatal(err)
			}
			all := p.pass()
			writes := all.Next()
			if c.asks {
				if len(writes) != 1 || writes[0].Verb != write.Get {
					t.Fatalf("%s: %v", c.why, writes)
				}
				writes = all.Answer(time.Time{}, writes[0], c.answer, c.err)
			}
			deletes := len(writes) == 1 && writes[0].Verb == write.Delete && writes[0].Object.GetUID() == "u"
			if deletes != c.deletes || (all.Err() != nil) != c.fails || (all.RequeueAfter() > 0) == c.deletes {
				t.Errorf("%s: %v, %v, again after %s", c.why, writes, all.Err(), all.RequeueAfter())
			}
		})
	}
}
