package sidecar_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/sidecar"
)

const (
	always  = v1beta1.AlwaysSidecarSetInjectRevisionPolicy
	partial = v1beta1.PartialSidecarSetInjectRevisionPolicy
)

// history has versions 1 to 3 of set a, version 2 twice, and one of another set.
func history() []*appsv1.ControllerRevision {
	data := func(image string) string {
		return fmt.Sprintf(`{"spec":{"$patch":"replace","containers":[{"name":"c","image":%q}],"initContainers":null,"volumes":null,"imagePullSecrets":[{"name":"s"}],"patchPodMetadata":null}}`,
			image)
	}
	return []*appsv1.ControllerRevision{
		revisionOf("a", "a-1", 1, "v1", data("c:1")), revisionOf("a", "a-2", 2, "v2", data("c:2")),
		revisionOf("a", "a-4", 4, "v2", data("c:4")), revisionOf("a", "a-3", 3, "v3", data("c:3")),
		revisionOf("b", "b-9", 9, "v2", data("c:9")),
	}
}

func partition(of any) setChange {
	return func(s *v1beta1.SidecarSet) {
		switch of := of.(type) {
		case int:
			s.Spec.UpdateStrategy.Partition = ptr.To(intstr.FromInt(of))
		case string:
			s.Spec.UpdateStrategy.Partition = ptr.To(intstr.FromString(of))
		}
	}
}

func updates(keysAndValues ...string) setChange {
	return func(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Selector = withLabels(keysAndValues...) }
}

func pausedUpdate(s *v1beta1.SidecarSet) { s.Spec.UpdateStrategy.Paused = true }

func TestResolve(t *testing.T) {
	v2 := ptr.To("v2")
	cases := map[string]struct {
		why     string
		changes []setChange
		random  uint32
		want    string
	}{
		"no pin":       {why: "the set as it is", want: "c:now"},
		"an empty pin": {why: "it names nothing", changes: []setChange{pins(nil, nil, always)}, want: "c:now"},
		"a name":       {why: "that revision", changes: []setChange{pins(ptr.To("a-1"), nil, always)}, want: "c:1"},
		"a version": {
			why: "the newest of it, of this set", changes: []setChange{pins(nil, v2, always)}, want: "c:4",
		},
		"both": {
			why: "the name goes first", changes: []setChange{pins(ptr.To("a-3"), v2, always)}, want: "c:3",
		},
		"always and selector": {
			why: "the selector is for partial", changes: []setChange{pins(nil, v2, always), updates("app", "shop")}, want: "c:4",
		},
		"partial, selected": {
			why:     "the pod is one that is updated",
			changes: []setChange{pins(nil, v2, partial), updates("app", "shop")},
			want:    "c:now",
		},
		"partial, unselected": {
			why:     "the pod is one that is held back",
			changes: []setChange{pins(nil, v2, partial), updates("app", "y")},
			want:    "c:4",
		},
		"partial, paused": {
			why:     "no pod is updated, so none may begin with what is new",
			changes: []setChange{pins(nil, v2, partial), updates("app", "shop"), pausedUpdate},
			want:    "c:4",
		},
		"partial, no number": {why: "nothing holds it back", changes: []setChange{pins(nil, v2, partial)}, want: "c:now"},
		"partial, number": {
			why: "a number of pods is no share", changes: []setChange{pins(nil, v2, partial), partition(5)}, want: "c:now",
		},
		"partial, all": {
			why:     "even with the largest number",
			changes: []setChange{pins(nil, v2, partial), partition("100%")},
			random:  math.MaxUint32,
			want:    "c:4",
		},
		"partial, none": {
			why: "even with the smallest number", changes: []setChange{pins(nil, v2, partial), partition("0%")}, want: "c:now",
		},
		"partial, below a part": {
			why:     "a percentage may have a fraction, as that of running pods",
			changes: []setChange{pins(nil, v2, partial), partition("12.5%")},
			random:  1<<29 - 1,
			want:    "c:4",
		},
		"partial, above a part": {
			why:     "the rest is not held back",
			changes: []setChange{pins(nil, v2, partial), partition("12.5%")},
			random:  1 << 29,
			want:    "c:now",
		},
		"partial, more": {
			why:     "more than all is all",
			changes: []setChange{pins(nil, v2, partial), partition("900%")},
			random:  math.MaxUint32,
			want:    "c:4",
		},
		"partial, less": {
			why: "less than none is none", changes: []setChange{pins(nil, v2, partial), partition("-5%")}, want: "c:now",
		},
		"a policy of tomorrow": {
			why: "what is not known is no reason to give what is new", changes: []setChange{pins(nil, v2, "Odd")}, want: "c:4",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			now := container("c")
			now.Image = "c:now"
			set := sidecarSet("a", append(c.changes, of(now))...)
			was, revisions := set.DeepCopy(), history()
			for range 2 {
				got, err := sidecar.Resolve(parse(set)[0], podOf(), revisions, c.random)
				if err != nil {
					t.Fatal(err)
				}
				if image := got.Object().Spec.Containers[0].Image; image != c.want {
					t.Errorf("%s: want %s, got %s", c.why, c.want, image)
				}
				slices.Reverse(revisions)
			}
			sameAs(t, "the set", was, set)
		})
	}
}

// TestRestored looks at what is left of a set when a former revision takes its place.
func TestRestored(t *testing.T) {
	set := sidecarSet("a", of(container("c")), volumes("v"), pins(ptr.To("a-1"), nil, always),
		annotated("k", "v", kruise.SidecarSetHashKey, "now", kruise.SidecarSetHashWithoutImageKey, "now"))
	set.Status.LatestRevision = "a-5"
	revisions := history()
	got, err := sidecar.Resolve(parse(set)[0], podOf(), revisions, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := &v1beta1.SidecarSet{}
	want.Name, want.Annotations = "a", pairs("k", "v")
	want.Spec.Containers, want.Spec.ImagePullSecrets = []v1beta1.SidecarContainer{container("c")}, references("s")
	want.Status.LatestRevision = "a-1"
	sameAs(t, "what the revision records", want, got.Object())

	revisions[0].Annotations = pairs(kruise.SidecarSetHashKey, "then", kruise.SidecarSetHashWithoutImageKey, "bare")
	if got, err = sidecar.Resolve(parse(set)[0], podOf(), revisions, 0); err != nil {
		t.Fatal(err)
	}
	want.Annotations = pairs("k", "v", kruise.SidecarSetHashKey, "then", kruise.SidecarSetHashWithoutImageKey, "bare")
	sameAs(t, "the hashes that the revision has", want, got.Object())
}

func TestResolveRefuses(t *testing.T) {
	cases := map[string]struct {
		changes []setChange
		want    string
		is      error
	}{
		"no such name": {
			changes: []setChange{pins(ptr.To("a-9"), nil, always)},
			want:    `sidecarset a: spec.injectionStrategy.revision.revisionName: "a-9": `,
			is:      sidecar.ErrNoRevision,
		},
		"another's name": {
			changes: []setChange{pins(ptr.To("b-9"), nil, always)},
			want:    `sidecarset a: spec.injectionStrategy.revision.revisionName: "b-9": `,
			is:      sidecar.ErrNoRevision,
		},
		"no such version": {
			changes: []setChange{pins(nil, ptr.To("v9"), always)},
			want:    `sidecarset a: spec.injectionStrategy.revision.customVersion: "v9": `,
			is:      sidecar.ErrNoRevision,
		},
		"missing if partial": {
			changes: []setChange{pins(nil, ptr.To("v9"), partial)}, want: `customVersion: "v9"`, is: sidecar.ErrNoRevision,
		},
		"a bad percentage": {
			changes: []setChange{pins(nil, ptr.To("v2"), partial), partition("abc%")},
			want:    "sidecarset a: spec.updateStrategy.partition: ",
		},
		"a text": {
			changes: []setChange{pins(nil, ptr.To("v2"), partial), partition("5")}, want: "spec.updateStrategy.partition: ",
		},
		"a bad selector": {
			changes: []setChange{pins(nil, ptr.To("v2"), partial), func(s *v1beta1.SidecarSet) {
				s.Spec.UpdateStrategy.Selector = withExpression("a", "Odd")
			}},
			want: "sidecarset a: spec.updateStrategy.selector: ",
		},
		"bad data": {
			changes: []setChange{pins(ptr.To("a-0"), nil, always)},
			want:    "sidecarset a: spec.injectionStrategy.revision: decode revision a-0: ",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			revisions := append(history(), revisionOf("a", "a-0", 0, "", `{"spec":[]}`))
			_, err := sidecar.Resolve(parse(sidecarSet("a", c.changes...))[0], podOf(), revisions, 0)
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("want %s, got %v", c.want, err)
			}
		})
	}
}

// TestUnnamedVersions: a revision without a custom version is not of the empty one.
func TestUnnamedVersions(t *testing.T) {
	r := revisionOf("a", "a-1", 1, "", `{"spec":{"containers":[{"name":"c","image":"c:1"}]}}`)
	set := parse(sidecarSet("a", pins(nil, ptr.To(""), always)))[0]
	if got, err := sidecar.Former(set, []*appsv1.ControllerRevision{r}); got != r || err != nil {
		t.Errorf("it has that label: %v, %v", got, err)
	}
	delete(r.Labels, v1beta1.SidecarSetCustomVersionLabel)
	if got, err := sidecar.Former(set, []*appsv1.ControllerRevision{r}); got != nil ||
		!errors.Is(err, sidecar.ErrNoRevision) {
		t.Errorf("it has no custom version: %v, %v", got, err)
	}
}
