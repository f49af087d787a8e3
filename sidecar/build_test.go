package sidecar_test

import (
	"flag"
	"math/rand"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/sidecar"
)

// The same cases each time, unless others are asked for: go test ./sidecar -seed=1000000. A failure names the case.
var seed = flag.Int64("seed", 1, "the first of the random cases")

// eachCase runs n random cases.
func eachCase(t *testing.T, n int64, try func(r *random) (problem string)) {
	t.Helper()
	t.Logf("-seed=%d", *seed)
	if testing.Short() {
		n = max(n/10, 20)
	}
	for i := range n {
		if problem := try(&random{rand.New(rand.NewSource(*seed + i))}); problem != "" {
			t.Fatalf("-seed=%d: %s", *seed+i, problem)
		}
	}
}

type random struct{ *rand.Rand }

func (r *random) once(in int) bool     { return r.Intn(in) == 0 }
func pick[T any](r *random, of ...T) T { return of[r.Intn(len(of))] }

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// at is what most injections are made with.
func at() sidecar.Options { return sidecar.Options{Now: noon()} }

type setChange func(*v1beta1.SidecarSet)

// sidecarSet is one that selects app=shop.
func sidecarSet(name string, changes ...setChange) *v1beta1.SidecarSet {
	set := &v1beta1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	for _, change := range changes {
		change(set)
	}
	set.Default()
	return set
}

func of(containers ...v1beta1.SidecarContainer) setChange {
	return func(s *v1beta1.SidecarSet) { s.Spec.Containers = append(s.Spec.Containers, containers...) }
}

func ofInit(containers ...v1beta1.SidecarContainer) setChange {
	return func(s *v1beta1.SidecarSet) { s.Spec.InitContainers = append(s.Spec.InitContainers, containers...) }
}

func patches(policy v1beta1.SidecarSetPatchPolicyType, key, value string) setChange {
	return func(s *v1beta1.SidecarSet) {
		s.Spec.PatchPodMetadata = append(s.Spec.PatchPodMetadata, v1beta1.SidecarSetPatchPodMetadata{
			PatchPolicy: policy, Annotations: map[string]string{key: value},
		})
	}
}

func volumes(names ...string) setChange {
	return func(s *v1beta1.SidecarSet) { s.Spec.Volumes = append(s.Spec.Volumes, emptyDirs("", names...)...) }
}

func secrets(names ...string) setChange {
	return func(s *v1beta1.SidecarSet) { s.Spec.ImagePullSecrets = references(names...) }
}

func canaryOf(base string) setChange {
	return annotated(v1beta1.SidecarSetCanaryAnnotation, "true", v1beta1.SidecarSetBaseAnnotation, base)
}

func annotated(keysAndValues ...string) setChange {
	return func(s *v1beta1.SidecarSet) { s.Annotations = pairs(keysAndValues...) }
}

func pausedInjection(s *v1beta1.SidecarSet) { s.Spec.InjectionStrategy.Paused = true }

// pins gives new pods a former revision.
func pins(name, version *string, policy v1beta1.SidecarSetInjectRevisionPolicy) setChange {
	return func(s *v1beta1.SidecarSet) {
		s.Spec.InjectionStrategy.Revision = &v1beta1.SidecarSetInjectRevision{
			RevisionName: name, CustomVersion: version, Policy: policy,
		}
	}
}

type containerChange func(*v1beta1.SidecarContainer)

// container is one of a set, which goes before the pod's own.
func container(name string, changes ...containerChange) v1beta1.SidecarContainer {
	c := v1beta1.SidecarContainer{Container: corev1.Container{Name: name, Image: name + ":1"}}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func before(c *v1beta1.SidecarContainer) { c.PodInjectPolicy = v1beta1.BeforeAppContainerType }
func behind(c *v1beta1.SidecarContainer) { c.PodInjectPolicy = v1beta1.AfterAppContainerType }
func native(c *v1beta1.SidecarContainer) {
	c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
}

func sharing(c *v1beta1.SidecarContainer) {
	c.ShareVolumePolicy.Type = v1beta1.ShareVolumePolicyEnabled
}

func wholeEnv(c *v1beta1.SidecarContainer) { transfers("main", "POD_NAME", "OD_NAME", "PROXY_IP")(c) }

func sharingDevices(c *v1beta1.SidecarContainer) {
	c.ShareVolumeDevicePolicy = &v1beta1.ShareVolumePolicy{Type: v1beta1.ShareVolumePolicyEnabled}
}

func hot(empty string) containerChange {
	return func(c *v1beta1.SidecarContainer) {
		c.UpgradeStrategy = v1beta1.SidecarContainerUpgradeStrategy{
			UpgradeType: v1beta1.SidecarContainerHotUpgrade, HotUpgradeEmptyImage: empty,
		}
	}
}

func transfers(from string, names ...string) containerChange {
	return func(c *v1beta1.SidecarContainer) {
		c.TransferEnv = append(c.TransferEnv, v1beta1.TransferEnvVar{SourceContainerName: from, EnvNames: names})
	}
}

func transfersFrom(path string, names ...string) containerChange {
	return func(c *v1beta1.SidecarContainer) {
		c.TransferEnv = append(c.TransferEnv, v1beta1.TransferEnvVar{
			SourceContainerName:     "nobody",
			SourceContainerNameFrom: &v1beta1.SourceContainerNameSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}},
			EnvNames:                names,
		})
	}
}

// core changes what a container of a set has in common with one of a pod.
func core(change func(*corev1.Container)) containerChange {
	return func(c *v1beta1.SidecarContainer) { change(&c.Container) }
}

func mounts(volumesAndPaths ...string) func(*corev1.Container) {
	return func(c *corev1.Container) {
		for i := 0; i < len(volumesAndPaths); i += 2 {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
				Name: volumesAndPaths[i], MountPath: volumesAndPaths[i+1],
			})
		}
	}
}

func devices(volumesAndPaths ...string) func(*corev1.Container) {
	return func(c *corev1.Container) {
		for i := 0; i < len(volumesAndPaths); i += 2 {
			c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{
				Name: volumesAndPaths[i], DevicePath: volumesAndPaths[i+1],
			})
		}
	}
}

func env(namesAndValues ...string) func(*corev1.Container) {
	return func(c *corev1.Container) {
		for i := 0; i < len(namesAndValues); i += 2 {
			c.Env = append(c.Env, corev1.EnvVar{Name: namesAndValues[i], Value: namesAndValues[i+1]})
		}
	}
}

// podOf has containers of these names, and the label app=shop.
func podOf(containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{Containers: containers},
	}
}

func own(name string, changes ...func(*corev1.Container)) corev1.Container {
	c := corev1.Container{Name: name, Image: "app:1"}
	for _, change := range changes {
		change(&c)
	}
	return c
}

// revisionOf is a revision with data of a set.
func revisionOf(set, name string, number int64, version, data string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: pairs(v1beta1.SidecarSetNameLabel, set, v1beta1.SidecarSetCustomVersionLabel, version),
		},
		Revision: number,
		Data:     runtime.RawExtension{Raw: []byte(data)},
	}
}

func pairs(keysAndValues ...string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(keysAndValues); i += 2 {
		all[keysAndValues[i]] = keysAndValues[i+1]
	}
	return all
}

func emptyDirs(medium corev1.StorageMedium, names ...string) []corev1.Volume {
	var all []corev1.Volume
	for _, name := range names {
		all = append(all, corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}},
		})
	}
	return all
}

func references(names ...string) []corev1.LocalObjectReference {
	var all []corev1.LocalObjectReference
	for _, name := range names {
		all = append(all, corev1.LocalObjectReference{Name: name})
	}
	return all
}

// parse reads sets, also those of which a part cannot be read.
func parse(sets ...*v1beta1.SidecarSet) []*sidecar.Set {
	var all []*sidecar.Set
	for _, set := range sets {
		read, _ := sidecar.Parse(set)
		all = append(all, read)
	}
	return all
}

// inject is what becomes of a pod, which is the pod itself where nothing is to be done.
func inject(t *testing.T, pod *corev1.Pod, o sidecar.Options, sets ...*v1beta1.SidecarSet) (*corev1.Pod, []note.Note) {
	t.Helper()
	got, err := sidecar.Inject(pod, parse(sets...), o)
	if err != nil {
		t.Fatal(err)
	}
	if got.Pod == nil {
		return pod, got.Notes
	}
	return got.Pod, got.Notes
}

func names(containers []corev1.Container) []string {
	var all []string
	for i := range containers {
		all = append(all, containers[i].Name)
	}
	return all
}

func codes(notes []note.Note) []string {
	var all []string
	for _, n := range notes {
		all = append(all, n.Code+" "+n.Object)
	}
	return all
}

func sameAs(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
