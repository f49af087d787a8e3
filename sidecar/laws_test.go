package sidecar_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/apps/v1beta1"
	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/sidecar"
)

// fill draws what a container has from few values, so that containers meet on paths, variables and volumes.
func (r *random) fill(c *corev1.Container) {
	for _, path := range []string{"/a", "/b", "/c", "/d"} {
		switch r.Intn(5) {
		case 0:
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
				Name: pick(r, "v1", "v2", "v3"), MountPath: path, SubPathExpr: pick(r, "", "$(A)/$(B)", "$("),
			})
		case 1:
			c.VolumeDevices = append(c.VolumeDevices, corev1.VolumeDevice{Name: pick(r, "v1", "v2", "v3"), DevicePath: path})
		}
	}
	for _, name := range []string{"A", "B", "C"} {
		if r.once(2) {
			env(name, pick(r, "1", "2"))(c)
		}
	}
	if r.once(2) {
		limits("100m", pick(r, "", "1Gi"))(c)
	}
}

func (r *random) pod() *corev1.Pod {
	pod := podOf()
	for i := range 1 + r.Intn(3) {
		c := own(fmt.Sprintf("app%d", i))
		r.fill(&c)
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	for i := range r.Intn(3) {
		c := own(fmt.Sprintf("init%d", i))
		r.fill(&c)
		if r.once(2) {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	pod.Spec.Volumes = emptyDirs("Memory", pick(r, nil, []string{"v1"}, []string{"v1", "v2"})...)
	pod.Spec.ImagePullSecrets = references(pick(r, nil, []string{"p1"}, []string{"p1", "p2"})...)
	pod.Annotations = pick(r, nil, pairs("k1", `{"pod":1}`), pairs("k1", `{"pod":1}`, "own", "x",
		kruise.SidecarSetInjectedListKey, "former", kruise.SidecarSetHashKey, `{"former":"h"}`))
	return pod
}

// sets draws some with containers of names of their own; where they may replace, also of the pod's.
func (r *random) sets(replace bool) []*v1beta1.SidecarSet {
	all := make([]*v1beta1.SidecarSet, 1+r.Intn(3))
	for i := range all {
		all[i] = sidecarSet(fmt.Sprintf("set%d", i), volumes("v1", "v2", "v3"))
		if r.once(3) {
			volumes("v4")(all[i])
		}
		for j := range r.Intn(3) {
			name := fmt.Sprintf("c%d-%d", j, i)
			if replace && i == 0 && j == 0 {
				name = "app0"
			}
			of(r.container(name))(all[i])
		}
		for j := range r.Intn(3) {
			name := fmt.Sprintf("i%d-%d", j, i)
			if replace && i == 1 && j == 0 {
				name = "init0"
			}
			c := r.container(name)
			if r.once(2) {
				native(&c)
			}
			ofInit(c)(all[i])
		}
		secrets(pick(r, nil, []string{"p2", "p3"})...)(all[i])
		for range r.Intn(3) {
			patches(pick(r, retain, overwrite, mergeJSON, "Odd"), pick(r, "k1", "k2"),
				pick(r, `{"pod":2}`, `{ "set":1}`, `[]`))(all[i])
		}
		hashed(pick(r, "h1", ""), pick(r, "r1", ""))(all[i])
		all[i].Default()
	}
	return all
}

func (r *random) container(name string) v1beta1.SidecarContainer {
	c := container(name)
	r.fill(&c.Container)
	for _, change := range []containerChange{
		before, behind, sharing, sharingDevices, hot("empty"),
		computes(pick(r, sum, largest), ".*", "cpu", "memory", "cpu", ""),
	} {
		if r.once(3) {
			change(&c)
		}
	}
	for range r.Intn(3) {
		transfers(pick(r, "app0", "app1", "c0-0", "nobody"), pick(r, "A", "B"), "C")(&c)
	}
	return c
}

func (r *random) options() sidecar.Options {
	return sidecar.Options{Now: noon(), SortContainers: r.once(2)}
}

// laws draws a pod and sets, and says which law their injection breaks. It tells whether the pod was changed, and a
// container of it replaced.
func laws(r *random) (problem string, changed, replaced bool) {
	pod, sets, o := r.pod(), r.sets(r.once(2)), r.options()
	wasPod := pod.DeepCopy()
	var wasSets []*v1beta1.SidecarSet
	for _, s := range sets {
		wasSets = append(wasSets, s.DeepCopy())
	}
	got, err := sidecar.Inject(pod, parse(sets...), o)
	if err != nil {
		// The only thing in these pods that cannot be had: every target may be replaced.
		if errors.Is(err, sidecar.ErrNoTarget) {
			return "", false, false
		}
		return err.Error(), false, false
	}
	if diff := cmp.Diff(wasPod, pod) + cmp.Diff(wasSets, sets); diff != "" {
		return "the input is changed: " + diff, false, false
	}
	result := pod
	if got.Pod != nil {
		result, changed = got.Pod, true
	}
	shuffled := slices.Clone(sets)
	r.Shuffle(len(sets), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	if other, err := sidecar.Inject(pod, parse(shuffled...), o); err != nil || !cmp.Equal(got, other) {
		return fmt.Sprintf("the order of the sets matters: %v %s", err, cmp.Diff(got, other)), changed, false
	}
	later := o
	later.Now = o.Now.AddDate(1, 0, 0)
	if again, err := sidecar.Inject(result, parse(sets...), later); err != nil || again.Pod != nil {
		return fmt.Sprintf("it is injected again: %v %s", err, cmp.Diff(result, again.Pod)), changed, false
	}
	replaced = slices.ContainsFunc(got.Notes, func(n note.Note) bool { return n.Code == sidecar.NoteReplaced })
	return firstOf(keepsOwn(pod, result, sets), takesAway(pod, result, sets), isWhole(result, sets, pod)), changed,
		replaced
}

func TestLaws(t *testing.T) {
	changed, replaced := 0, 0
	eachCase(t, 3000, func(r *random) string {
		problem, didChange, didReplace := laws(r)
		if didChange {
			changed++
		}
		if didReplace {
			replaced++
		}
		return problem
	})
	t.Logf("%d pods were changed, and of %d a container was replaced", changed, replaced)
	if !testing.Short() && (changed < 1000 || replaced < 100) {
		t.Errorf("the cases are too tame: %d changed, %d replaced", changed, replaced)
	}
}

func firstOf(problems ...string) string {
	for _, p := range problems {
		if p != "" {
			return p
		}
	}
	return ""
}

// inPod are the names that a set's containers have in the pod, by a rule of its own: what is hot and keeps running is
// two.
func inPod(sets []*v1beta1.SidecarSet) map[string]bool {
	all := map[string]bool{}
	for _, s := range sets {
		for i, c := range slices.Concat(s.Spec.Containers, s.Spec.InitContainers) {
			if c.UpgradeStrategy.UpgradeType == "HotUpgrade" && (i < len(s.Spec.Containers) || c.RestartPolicy != nil) {
				all[c.Name+"-1"], all[c.Name+"-2"] = true, true
			} else {
				all[c.Name] = true
			}
		}
	}
	return all
}

// without leaves out containers of these names.
func without(containers []corev1.Container, gone map[string]bool) []corev1.Container {
	left := slices.DeleteFunc(slices.Clone(containers), func(c corev1.Container) bool { return gone[c.Name] })
	if len(left) == 0 {
		return nil // however it was written
	}
	return left
}

// keepsOwn: the pod's own containers are as they were, and in their order.
func keepsOwn(was, is *corev1.Pod, sets []*v1beta1.SidecarSet) string {
	gone := inPod(sets)
	for _, diff := range []string{
		cmp.Diff(without(was.Spec.Containers, gone), without(is.Spec.Containers, gone)),
		cmp.Diff(without(was.Spec.InitContainers, gone), without(is.Spec.InitContainers, gone)),
	} {
		if diff != "" {
			return "the pod's own containers are changed: " + diff
		}
	}
	return ""
}

// takesAway: the pod less what was injected is the pod as it was.
func takesAway(was, is *corev1.Pod, sets []*v1beta1.SidecarSet) string {
	was, is = was.DeepCopy(), is.DeepCopy()
	gone := inPod(sets)
	patched := map[string]bool{}
	for _, s := range sets {
		for _, p := range s.Spec.PatchPodMetadata {
			for key := range p.Annotations {
				patched[key] = true
			}
		}
	}
	for _, p := range []*corev1.Pod{was, is} {
		p.Spec.Containers, p.Spec.InitContainers = without(p.Spec.Containers, gone), without(p.Spec.InitContainers, gone)
		maps.DeleteFunc(p.Annotations, func(key, _ string) bool {
			return patched[key] || strings.Contains(key, "sidecarset")
		})
	}
	if len(is.Spec.Volumes) < len(was.Spec.Volumes) || len(is.Spec.ImagePullSecrets) < len(was.Spec.ImagePullSecrets) {
		return "volumes or secrets are lost"
	}
	is.Spec.Volumes = is.Spec.Volumes[:len(was.Spec.Volumes)]
	is.Spec.ImagePullSecrets = is.Spec.ImagePullSecrets[:len(was.Spec.ImagePullSecrets)]
	if !equality.Semantic.DeepEqual(was, is) {
		return "there is more than was injected: " + cmp.Diff(was, is)
	}
	return ""
}

// isWhole: each container is there once, says that it was injected, and has no path or variable twice.
func isWhole(is *corev1.Pod, sets []*v1beta1.SidecarSet, was *corev1.Pod) string {
	want := inPod(sets)
	if len(want) == 0 {
		return ""
	}
	seen := map[string]int{}
	for _, c := range slices.Concat(is.Spec.InitContainers, is.Spec.Containers) {
		seen[c.Name]++
		if seen[c.Name] > 1 {
			return "twice: " + c.Name
		}
		if !want[c.Name] {
			continue
		}
		used := map[string]bool{}
		for _, key := range keysOf(c) {
			if used[key] {
				return fmt.Sprintf("container %s has %s twice", c.Name, key)
			}
			used[key] = true
		}
		if !used["env IS_INJECTED"] {
			return c.Name + " does not say that it was injected"
		}
		for _, m := range c.VolumeMounts {
			has := func(v corev1.Volume) bool { return v.Name == m.Name }
			if !slices.ContainsFunc(is.Spec.Volumes, has) && !borrowed(was, m.Name) {
				return fmt.Sprintf("container %s mounts %s, which is not there", c.Name, m.Name)
			}
		}
	}
	for name := range want {
		if seen[name] == 0 {
			return name + " is missing"
		}
	}
	for _, s := range sets {
		if !strings.Contains(","+is.Annotations[kruise.SidecarSetInjectedListKey]+",", ","+s.Name+",") {
			return s.Name + " is not recorded"
		}
	}
	return ""
}

// borrowed says that a container of the pod mounts a volume which the pod does not have: the pod is broken by itself.
func borrowed(pod *corev1.Pod, volume string) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
	})
}

func keysOf(c corev1.Container) []string {
	var all []string
	for _, e := range c.Env {
		all = append(all, "env "+e.Name)
	}
	for _, m := range c.VolumeMounts {
		all = append(all, "path "+m.MountPath)
	}
	for _, d := range c.VolumeDevices {
		all = append(all, "path "+d.DevicePath)
	}
	return all
}
