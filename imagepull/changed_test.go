package imagepull_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// listing is a NodeImage with app:1 of jobs a and b, and app:2 of job c, that have been pulled.
func listing(change func(*v1beta1.NodeImage)) *v1beta1.NodeImage {
	of := func(jobs ...types.UID) (owners []corev1.ObjectReference) {
		for _, uid := range jobs {
			owners = append(owners, corev1.ObjectReference{UID: uid})
		}
		return owners
	}
	n := &v1beta1.NodeImage{}
	n.Spec.Images = map[string]v1beta1.ImageSpec{"app": {Tags: []v1beta1.ImageTagSpec{
		{Tag: "1", Version: 3, OwnerReferences: of("a", "b")}, {Tag: "2", OwnerReferences: of("c")},
	}}}
	n.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"app": {Tags: []v1beta1.ImageTagStatus{
		{Tag: "1", Version: 3, Phase: v1beta1.ImagePhaseSucceeded}, {Tag: "2", Phase: v1beta1.ImagePhaseFailed},
	}}}
	change(n)
	return n
}

func TestChanged(t *testing.T) {
	same := func(*v1beta1.NodeImage) {}
	waiting := func(n *v1beta1.NodeImage) { n.Status = v1beta1.NodeImageStatus{} }
	tag := func(at int, change func(*v1beta1.ImageTagSpec)) func(*v1beta1.NodeImage) {
		return func(n *v1beta1.NodeImage) { change(&n.Spec.Images["app"].Tags[at]) }
	}
	status := func(at int, change func(*v1beta1.ImageTagStatus)) func(*v1beta1.NodeImage) {
		return func(n *v1beta1.NodeImage) { change(&n.Status.ImageStatuses["app"].Tags[at]) }
	}
	cases := map[string]struct {
		why           string
		before, after func(*v1beta1.NodeImage)
		want          []types.UID
	}{
		"nothing":         {"", same, same, nil},
		"another image":   {"", same, func(n *v1beta1.NodeImage) { n.Spec.Images["other"] = v1beta1.ImageSpec{} }, nil},
		"order of tags":   {"", same, func(n *v1beta1.NodeImage) { slices.Reverse(n.Spec.Images["app"].Tags) }, nil},
		"both have ended": {"all who asked", waiting, same, []types.UID{"a", "b", "c"}},
		"one has ended": {
			why:    "the other tag is as it was",
			before: status(0, func(s *v1beta1.ImageTagStatus) { s.Phase = v1beta1.ImagePhasePulling }),
			after:  same,
			want:   []types.UID{"a", "b"},
		},
		"one fails instead": {
			before: same,
			after:  status(1, func(s *v1beta1.ImageTagStatus) { s.Phase = v1beta1.ImagePhaseSucceeded }),
			want:   []types.UID{"c"},
		},
		"it goes on": {
			"progress is no result", status(1, func(s *v1beta1.ImageTagStatus) { s.Phase = v1beta1.ImagePhaseWaiting }),
			status(1, func(s *v1beta1.ImageTagStatus) { s.Phase, s.Progress = v1beta1.ImagePhasePulling, 50 }), nil,
		},
		"a new round": {
			why:    "its result is of the last one",
			before: same,
			after:  tag(0, func(t *v1beta1.ImageTagSpec) { t.Version++ }),
			want:   []types.UID{"a", "b"},
		},
		"another deadline": {
			why:    "a job does not look at it",
			before: same,
			after:  tag(0, func(t *v1beta1.ImageTagSpec) { t.PullPolicy = &v1beta1.ImageTagPullPolicy{} }),
		},
		"an owner leaves": {
			why:    "only it has to ask again",
			before: same,
			after:  tag(0, func(t *v1beta1.ImageTagSpec) { t.OwnerReferences = t.OwnerReferences[1:] }),
			want:   []types.UID{"a"},
		},
		"an owner comes": {"it came by itself, and waits", func(n *v1beta1.NodeImage) {
			waiting(n)
			tag(1, func(t *v1beta1.ImageTagSpec) { t.OwnerReferences = nil })(n)
		}, waiting, nil},
		"an owner comes to a result": {
			why:    "it may have come while nobody watched",
			before: tag(1, func(t *v1beta1.ImageTagSpec) { t.OwnerReferences = nil }),
			after:  same,
			want:   []types.UID{"c"},
		},
		"the tag leaves": {"", same, func(n *v1beta1.NodeImage) { n.Spec.Images = nil }, []types.UID{"a", "b", "c"}},
		"the tag is there": {
			why:    "a watch may skip what was between",
			before: func(n *v1beta1.NodeImage) { n.Spec.Images = nil },
			after:  same,
			want:   []types.UID{"a", "b", "c"},
		},
		"a secret leaves": {"all tags of the image", same, func(n *v1beta1.NodeImage) {
			image := n.Spec.Images["app"]
			image.PullSecrets = []v1beta1.ReferenceObject{{Name: "x"}}
			n.Spec.Images["app"] = image
		}, []types.UID{"a", "b", "c"}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			var got []types.UID
			for _, job := range imagepull.Changed(listing(test.before), listing(test.after)) {
				got = append(got, job.UID)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, diff)
			}
		})
	}
}
