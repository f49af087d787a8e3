package native_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/revision"
	"github.com/kruisekit/kruisekit/workload/native"
)

const restartedAt = "kubectl.kubernetes.io/restartedAt"

// restarted is a template, and its revision that was stored some minutes after noon.
func restarted(number int, image, value string) (corev1.PodTemplateSpec, *appsv1.ControllerRevision) {
	template := templateOf(image)
	if value != "" {
		template.Annotations = map[string]string{restartedAt: value}
	}
	rev := revisionOf(number, image)
	data, err := revision.Encode(&template)
	if err != nil {
		panic(err) // of values of this file
	}
	rev.Data = runtime.RawExtension{Raw: data}
	rev.CreationTimestamp = metav1.NewTime(noon().Add(time.Duration(10*(number-1)) * time.Minute))
	return template, rev
}

func TestRestart(t *testing.T) {
	type pod struct {
		revision int
		created  int // minutes after noon
		value    string
	}
	cases := map[string]struct {
		images  []string
		values  []string // of the annotation, by revision
		rolling bool
		rollout native.Rollout
		pods    []pod
		want    []string
	}{
		"asked for: the user wants new pods": {
			values: []string{"", "a"}, pods: []pod{{revision: 1}},
			want: []string{"Evict db-0"},
		},
		"asked for again: each new value is another restart": {
			values: []string{"", "a", "b"}, pods: []pod{{revision: 2, created: 11, value: "a"}},
			want: []string{"Evict db-0"},
		},
		"with an image: the restart counts, whatever else changes": {
			values: []string{"", "a", "a"}, images: []string{"app:1", "app:1", "app:2"}, pods: []pod{{revision: 1, created: 9}},
			want: []string{"Evict db-0"},
		},
		"an image after it: the restart is done": {
			values: []string{"", "a", "a"}, images: []string{"app:1", "app:1", "app:2"},
			pods: []pod{{revision: 2, created: 11, value: "a"}},
			want: []string{"Update db-0"},
		},
		"undone: a template without the annotation asks for nothing": {
			values: []string{"a", ""}, pods: []pod{{revision: 1, value: "a"}},
			want: []string{"Update db-0"},
		},
		"undone by half: the pod is newer than the restart that the template asks for": {
			values: []string{"a", "b", "a"}, images: []string{"app:1", "app:1", "app:2"},
			pods: []pod{{revision: 2, created: 11, value: "b"}},
			want: []string{"Update db-0"},
		},
		"in place only: is reported": {
			values: []string{"", "a"}, pods: []pod{{revision: 1}}, rollout: native.Rollout{PodUpdatePolicy: native.InPlaceOnly},
			want: []string{"NotInPlace db-0"},
		},
		"in place only, deleted by hand: the pod has the old revision again, and is new": {
			values: []string{"", "a"}, rolling: true, pods: []pod{{revision: 1, created: 11}},
			rollout: native.Rollout{PodUpdatePolicy: native.InPlaceOnly},
			want:    []string{"Update db-0"},
		},
		"rolling: the pod comes back at the old revision": {
			values: []string{"", "a"}, rolling: true, pods: []pod{{revision: 1}},
			want: []string{"Evict db-0"},
		},
		"rolling, back: and goes to the newest in place: it is new": {
			values: []string{"", "a"}, rolling: true, pods: []pod{{revision: 1, created: 11}},
			want: []string{"Update db-0"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := setOf("app:1")
			set.Spec.Replicas = ptr.To(int32(len(c.pods)))
			if c.rolling {
				set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
				set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To(int32(9))}
			}
			o := native.Observed{Now: noon().Add(time.Hour)}
			for k, value := range c.values {
				image := "app:1"
				if c.images != nil {
					image = c.images[k]
				}
				template, rev := restarted(k+1, image, value)
				set.Spec.Template, set.Status.UpdateRevision = template, rev.Name
				o.Revisions = append(o.Revisions, rev)
			}
			for k, p := range c.pods {
				pod := podOf(fmt.Sprintf("db-%d", k), fmt.Sprintf("db-%d", p.revision), "app:1")
				pod.CreationTimestamp = metav1.NewTime(noon().Add(time.Duration(p.created) * time.Minute))
				if p.value != "" {
					pod.Annotations = map[string]string{restartedAt: p.value}
				}
				o.Pods = append(o.Pods, pod)
			}
			in, _ := native.StatefulSet(set, o, c.rollout)
			if d := cmp.Diff(c.want, planned(t, in)); d != "" {
				t.Errorf("%s", d)
			}
		})
	}
}
