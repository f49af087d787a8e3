package nodeimage

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	return &snapshot{name: "node-1", now: time.Unix(1, 0), node: node, image: image, known: map[identity]bool{}}
}

// The pass asks for what is not known before it drops anything. A question that fails keeps what it is about.
func TestPass(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{}, "x")
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no"))
	down := apierrors.NewInternalError(errors.New("down"))
	const untilAnswer = 10*time.Minute - time.Second // the daemon has not reported the pull
	cases := map[string]struct {
		change func(*snapshot)
		errs   map[string]error
		want   string
		body   string
		fails  bool
		wait   time.Duration
	}{
		"all exists": {
			want: "get a, get b, get key", wait: untilAnswer,
		},
		"what is known is not asked for": {
			change: func(s *snapshot) {
				s.known[jobOf(s.image.Spec.Images["nginx"].Tags[0].OwnerReferences[0])] = false
			},
			want: "get b, get key", wait: untilAnswer,
		},
		"a job is gone": {
			errs: map[string]error{"get a": missing}, want: "get a, get b, get key, patch node-1", body: `"name":"b"`,
		},
		"a secret is gone": {
			errs: map[string]error{"get key": missing}, want: "get a, get b, get key, patch node-1", body: "elsewhere",
		},
		"what cannot be read stays": {
			errs: map[string]error{"get a": forbidden, "get key": forbidden},
			want: "get a, get b, get key", wait: untilAnswer,
		},
		"a question that fails keeps what it is about": {
			errs: map[string]error{"get a": down, "get b": missing}, want: "get a, get b, get key, patch node-1",
			body: `"name":"a"`, fails: true,
		},
		"the node is gone": {
			change: func(s *snapshot) { s.node = nil },
			errs:   map[string]error{"get node-1": missing}, want: "get node-1, delete node-1",
		},
		"the cache lacks the node": {
			change: func(s *snapshot) { s.node = nil }, want: "get node-1", wait: catchUp,
		},
		"it is not known whether the node is gone": {
			change: func(s *snapshot) { s.node = nil },
			errs:   map[string]error{"get node-1": down}, want: "get node-1", fails: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := observed()
			if c.change != nil {
				c.change(s)
			}
			p := newPlan(s, Options{SecretNamespace: "secrets"})
			there := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
			var sent []string
			for unknown := p.decide(); len(unknown) > 0; unknown = p.decide() {
				for _, id := range unknown {
					sent = append(sent, "get "+id.name.Name)
					p.learn(id, there, c.errs["get "+id.name.Name])
				}
			}
			slices.Sort(sent)
			w, err := p.write(stored.Kind{GVK: gvk()})
			if err != nil {
				t.Fatal(err)
			}
			var body []byte
			after := p.wait()
			if w != nil {
				sent, after = append(sent, strings.ToLower(string(w.Verb))+" "+w.Object.GetName()), 0
				if body, err = w.Data(); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(sent, ", "); got != c.want || !strings.Contains(string(body), c.body) {
				t.Errorf("sent %s: %s", got, body)
			}
			if (len(p.failed) > 0) != c.fails || !c.fails && after != c.wait {
				t.Errorf("got %v, and look again after %s", p.failed, after)
			}
		})
	}
}
