package imagepull_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/imagepull"
)

// The same cases each time, unless others are asked for: go test ./imagepull -seed=1000000. A failure names the case.
var seed = flag.Int64("seed", 1, "the first of the random cases")

// eachCase runs n random cases.
func eachCase(t *testing.T, n int64, try func(r *random) (problem string)) {
	t.Helper()
	t.Logf("-seed=%d", *seed)
	for i := range n {
		if problem := try(&random{rand.New(rand.NewSource(*seed + i))}); problem != "" {
			t.Fatalf("-seed=%d: %s", *seed+i, problem)
		}
	}
}

type random struct{ *rand.Rand }

func (r *random) once(in int) bool     { return r.Intn(in) == 0 }
func pick[T any](r *random, of ...T) T { return of[r.Intn(len(of))] }

func noon() time.Time                         { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }
func ago(d time.Duration) *metav1.Time        { return ptr.To(metav1.NewTime(noon().Add(-d))) }
func jsonOf(v any) string                     { data, _ := json.Marshal(v); return string(data) }
func seconds(n int32) *int32                  { return &n }
func longSeconds(n int64) *int64              { return &n }
func atMost(n int32) *intstr.IntOrString      { return ptr.To(intstr.FromInt32(n)) }
func atMostText(s string) *intstr.IntOrString { return ptr.To(intstr.FromString(s)) }

// centuries is the longest time that is reckoned with.
func centuries() time.Duration {
	return time.Duration(math.MaxInt64/int64(2*time.Second)) * time.Second
}

const (
	digest  = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	another = "sha256:abcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcd"
)

// pullJob asks for an image; its uid is its name.
func pullJob(name, image string, change ...func(*v1beta1.ImagePullJob)) *v1beta1.ImagePullJob {
	j := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
	j.Spec.Image = image
	j.Default()
	for _, c := range change {
		c(j)
	}
	return j
}

func never(j *v1beta1.ImagePullJob)  { j.Spec.CompletionPolicy.Type = v1beta1.Never }
func always(j *v1beta1.ImagePullJob) { j.Spec.ImagePullPolicy = v1beta1.PullAlways }
func parallel(n int32) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) { j.Spec.Parallelism = atMost(n) }
}

func deadline(n int64) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.ActiveDeadlineSeconds = &n }
}

func ttl(n int32) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.TTLSecondsAfterFinished = &n }
}

func started(d time.Duration) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) { j.Status.StartTime = ago(d) }
}

func completed(d time.Duration) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) { j.Status.CompletionTime = ago(d) }
}

func request(j *v1beta1.ImagePullJob, secrets ...string) imagepull.Request {
	r := imagepull.Request{Job: j, Now: noon()}
	for _, s := range secrets {
		r.Secrets = append(r.Secrets, v1beta1.ReferenceObject{Namespace: "kruise-daemon-config", Name: s})
	}
	return r
}

// nodeImage lists nothing yet.
func nodeImage(name string, change ...func(*v1beta1.NodeImage)) *v1beta1.NodeImage {
	n := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, c := range change {
		c(n)
	}
	return n
}

// lists a tag, such as nginx:1, that was asked for by jobs a minute ago.
func lists(image string, version int64, jobs ...string) func(*v1beta1.NodeImage) {
	return func(n *v1beta1.NodeImage) {
		name, tag := cut(image)
		t := v1beta1.ImageTagSpec{
			Tag: tag, Version: version, CreatedAt: ago(time.Minute), ImagePullPolicy: v1beta1.PullIfNotPresent,
			PullPolicy: &v1beta1.ImageTagPullPolicy{
				TimeoutSeconds: seconds(600), BackoffLimit: seconds(3), TTLSecondsAfterFinished: seconds(1000),
			},
		}
		for _, job := range jobs {
			t.OwnerReferences = append(t.OwnerReferences, owner(job))
		}
		if n.Spec.Images == nil {
			n.Spec.Images = map[string]v1beta1.ImageSpec{}
		}
		i := n.Spec.Images[name]
		i.Tags = append(i.Tags, t)
		n.Spec.Images[name] = i
	}
}

// edit changes the first tag of an image.
func edit(name string, change func(*v1beta1.ImageTagSpec)) func(*v1beta1.NodeImage) {
	return func(n *v1beta1.NodeImage) { change(&n.Spec.Images[name].Tags[0]) }
}

func secretsOf(name string, secrets ...v1beta1.ReferenceObject) func(*v1beta1.NodeImage) {
	return func(n *v1beta1.NodeImage) {
		i := n.Spec.Images[name]
		i.PullSecrets = secrets
		n.Spec.Images[name] = i
	}
}

// did adds a status; what has ended did so half a minute ago.
func did(image string, version int64, phase v1beta1.ImagePullPhase) func(*v1beta1.NodeImage) {
	return func(n *v1beta1.NodeImage) {
		name, tag := cut(image)
		s := v1beta1.ImageTagStatus{Tag: tag, Version: version, Phase: phase, StartTime: ago(time.Minute)}
		if phase == v1beta1.ImagePhaseSucceeded || phase == v1beta1.ImagePhaseFailed {
			s.CompletionTime = ago(30 * time.Second)
		}
		if n.Status.ImageStatuses == nil {
			n.Status.ImageStatuses = map[string]v1beta1.ImageStatus{}
		}
		n.Status.ImageStatuses[name] = v1beta1.ImageStatus{Tags: append(n.Status.ImageStatuses[name].Tags, s)}
	}
}

func full(n *v1beta1.NodeImage) {
	for i := range imagepull.MaxImages {
		lists(fmt.Sprintf("other-%d:1", i), 0)(n)
	}
}

func cut(image string) (name, tag string) {
	if name, tag, ok := strings.Cut(image, "@"); ok {
		return name, tag
	}
	name, tag, _ = strings.Cut(image, ":")
	return name, tag
}

func owner(job string) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "apps.kruise.io/v1beta1",
		Kind:       "ImagePullJob",
		Namespace:  "shop",
		Name:       job,
		UID:        types.UID("uid-" + job),
	}
}

func secret(namespace, name string, format corev1.SecretType, data string) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: format, Data: map[string][]byte{},
	}
	switch format {
	case corev1.SecretTypeDockerConfigJson:
		s.Data[corev1.DockerConfigJsonKey] = []byte(data)
	case corev1.SecretTypeDockercfg:
		s.Data[corev1.DockerConfigKey] = []byte(data)
	default:
		s.Data["x"] = []byte(data)
	}
	return s
}
