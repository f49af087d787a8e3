package imagepulljob

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
)

// A stored job that the reference runs is run; the faults themselves are in the tables of package validation.
func TestInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		why    string
		change func(*v1beta1.ImagePullJobSpec)
		want   string
	}{
		"valid": {"nothing is invalid", func(*v1beta1.ImagePullJobSpec) {}, ""},
		"bad image": {
			"nodes could not pull the image", func(s *v1beta1.ImagePullJobSpec) { s.Image = "Not An Image" },
			"spec.image: Invalid",
		},
		"parallelism": {
			"the number of nodes is unknown",
			func(s *v1beta1.ImagePullJobSpec) { s.Parallelism = ptr.To(intstr.FromString("50%")) }, "spec.parallelism: Invalid",
		},
		"many secrets": {
			"the manager would copy them all", func(s *v1beta1.ImagePullJobSpec) {
				for i := range 33 {
					s.PullSecrets = append(s.PullSecrets, fmt.Sprint("s", i))
				}
			}, "spec.pullSecrets: Too many",
		},
		"long sandbox": {
			"each node would store it", func(s *v1beta1.ImagePullJobSpec) {
				s.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"a": strings.Repeat("x", 20000)}}
			}, "spec.sandboxConfig: Invalid",
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := &v1beta1.ImagePullJob{}
			job.Spec.Image = "nginx"
			c.change(&job.Spec)
			job.Default()
			err := invalid(job)
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.why, err, c.want)
			}
		})
	}
}
