package nodeimage

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/internal/stored"
)

// observed is a NodeImage with a tag that two jobs own, and with a secret.
func observed() *snapshot {
	owner := func(name string) corev1.ObjectReference {
		gv := v1beta1.GroupVersion.String()
		return corev1.ObjectReference{APIVersion: gv, Kind: "ImagePullJob", Namespace: "shop", Name: name, UID: "uid"}
	}
	image := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "uid-node", ResourceVersion: "7"}}
	image.Spec.Images = map[string]v1beta1.ImageSpec{"nginx": {
		PullSecrets: []v1beta1.ReferenceObject{{Namespace: "secrets", Name: "key"}, {Namespace: "elsewhere", Name: "key"}},
		Tags: []v1beta1.ImageTagSpec{{
			Tag: "1", CreatedAt: &metav1.Time{Time: time.Unix(0, 0)},
			OwnerReferences: []corev1.ObjectReference{owner("a"), owner("b")},
		}},
	}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	return &snapshot{name: "node-1", now: time.Unix(1, 0), node: node, image: image, gone: map[identity]bool{}}
}

// A pass drops what is known to be gone, and makes one write.
func TestPass(t *testing.T) {
	const untilAnswer = 10*time.Minute - time.Second // the daemon has not reported the pull
	cases := map[string]struct {
		change func(*snapshot)
		want   string
		body   string
		wait   time.Duration
	}{
		"all exists": {
			wait: untilAnswer,
		},
		"a job is gone": {
			change: func(s *snapshot) { s.gone[jobOf(s.image.Spec.Images["nginx"].Tags[0].OwnerReferences[0])] = true },
			want:   "patch node-1", body: `"name":"b"`,
		},
		"a secret is gone": {
			change: func(s *snapshot) { s.gone[secretOf(s.image.Spec.Images["nginx"].PullSecrets[0])] = true },
			want:   "patch node-1", body: "elsewhere",
		},
		"the node is gone": {
			change: func(s *snapshot) { s.node = nil },
			want:   "delete node-1",
		},
		"the cache lacks the node": {
			change: func(s *snapshot) { s.node, s.lags = nil, true },
			wait:   catchUp,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := observed()
			if c.change != nil {
				c.change(s)
			}
			p := newPlan(s, Options{})
			w, err := p.write(stored.Kind{GVK: gvk()})
			if err != nil {
				t.Fatal(err)
			}
			var got string
			var body []byte
			if w != nil {
				got = strings.ToLower(string(w.Verb)) + " " + w.Object.GetName()
				if body, err = w.Data(); err != nil {
					t.Fatal(err)
				}
			} else if p.decision.RequeueAfter != c.wait {
				t.Errorf("looks again after %s", p.decision.RequeueAfter)
			}
			if got != c.want || !strings.Contains(string(body), c.body) {
				t.Errorf("sent %q: %s", got, body)
			}
		})
	}
}
