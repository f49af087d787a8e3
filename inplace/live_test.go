package inplace_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kruisekit/kruisekit/api/kruise"
	"github.com/kruisekit/kruisekit/inplace"
)

// created is a pod of a template as an API server and a scheduler leave it: defaults, what admission adds, a node. It
// is naive, and covers what randomTemplate has.
func created(r *rand.Rand, t *corev1.PodTemplateSpec) *corev1.Pod {
	pod := running(t, "web-1")
	s := &pod.Spec
	s.DNSPolicy, s.RestartPolicy, s.SchedulerName = "ClusterFirst", "Always", "default-scheduler"
	s.TerminationGracePeriodSeconds, s.EnableServiceLinks = ptr.To[int64](30), ptr.To(true)
	s.SecurityContext = &corev1.PodSecurityContext{}
	s.ServiceAccountName, s.DeprecatedServiceAccount = "default", "default"
	s.Priority, s.PreemptionPolicy = ptr.To[int32](0), ptr.To(corev1.PreemptLowerPriority)
	token := "kube-api-access-x7k2p"
	s.Volumes = append(s.Volumes, corev1.Volume{Name: token, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{DefaultMode: ptr.To[int32](420)},
	}})
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			c := &list[i]
			c.TerminationMessagePath, c.TerminationMessagePolicy = "/dev/termination-log", "File"
			c.ImagePullPolicy = "IfNotPresent"
			if !strings.Contains(c.Image, ":") {
				c.ImagePullPolicy = "Always"
			}
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
				Name: token, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
			})
			for name, limit := range c.Resources.Limits {
				if _, has := c.Resources.Requests[name]; !has {
					if c.Resources.Requests == nil {
						c.Resources.Requests = corev1.ResourceList{}
					}
					c.Resources.Requests[name] = limit
				}
			}
			for _, name := range []corev1.ResourceName{"cpu", "memory"} {
				if _, has := c.Resources.Requests[name]; has && len(c.ResizePolicy) < 2 {
					c.ResizePolicy = append(c.ResizePolicy, corev1.ContainerResizePolicy{
						ResourceName: name, RestartPolicy: corev1.NotRequired,
					})
				}
			}
			for j := range c.Env {
				if from := c.Env[j].ValueFrom; from != nil && from.FieldRef != nil {
					from.FieldRef.APIVersion = "v1"
				}
			}
			if r.IntN(3) == 0 {
				launch(r.IntN(3))(c)
			}
		}
	}
	if len(s.Tolerations) == 0 || r.IntN(2) == 0 {
		s.Tolerations = append(s.Tolerations, unreachable(300))
	}
	furnish(r, pod)
	return pod
}

// furnish adds what some clusters and controllers add.
func furnish(r *rand.Rand, pod *corev1.Pod) {
	for _, add := range []func(){
		func() { pod.Spec.NodeName = "node-1" },
		func() { pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "of-the-account"}} },
		func() { pod.Spec.NodeSelector = map[string]string{"pool": "of-the-namespace"} },
		func() { pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, "web" },
		func() { pod.Spec.PriorityClassName, pod.Spec.Priority = "the-default", ptr.To[int32](7) },
		func() { pod.Spec.Overhead = amounts("memory", "10Mi") },
		func() { inplace.EnsureReadinessGate(&pod.Spec, &kruise.Keys{}) },
		func() { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "cni.example.com/ip", "10.0.0.7") },
		func() { metav1.SetMetaDataLabel(&pod.ObjectMeta, "pod-index", "7") },
		func() { pod.Finalizers = append(pod.Finalizers, "example.com/protects") },
		func() { pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{}} },
		func() { pod.Spec.SecurityContext.FSGroup = ptr.To[int64](1000) },
		func() {
			pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: ptr.To[int64](1000)}
			pod.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
		},
		func() {
			c := &pod.Spec.Containers[0]
			c.Resources.Limits = maps.Clone(c.Resources.Limits)
			if c.Resources.Limits == nil {
				c.Resources.Limits = corev1.ResourceList{}
			}
			c.Resources.Limits["ephemeral-storage"] = amounts("x", "1Gi")["x"]
		},
	} {
		if r.IntN(3) == 0 {
			add()
		}
	}
}

// drops reports whether a template has dropped what DiffPod does not see in a pod.
func drops(from, to *corev1.PodTemplateSpec) bool {
	lacks := func(a, b map[string]string) bool {
		for key := range a {
			if _, has := b[key]; !has {
				return true
			}
		}
		return false
	}
	if lacks(from.Labels, to.Labels) || lacks(from.Annotations, to.Annotations) || slices.ContainsFunc(from.Finalizers,
		func(f string) bool { return !slices.Contains(to.Finalizers, f) }) {
		return true
	}
	for _, toleration := range from.Spec.Tolerations {
		if !strings.Contains(jsonOf(to.Spec.Tolerations), jsonOf(toleration)) {
			return true
		}
	}
	for _, pair := range pairs(from, to) {
		a, b := pair[0], pair[1]
		if len(a.Resources.Limits) > 0 && len(a.Resources.Requests) < 2 {
			a.Resources.Requests = maps.Clone(a.Resources.Requests)
		}
		for _, lists := range [][2]corev1.ResourceList{
			{a.Resources.Limits, b.Resources.Limits}, {a.Resources.Requests, b.Resources.Requests},
		} {
			for name := range lists[0] {
				if _, has := lists[1][name]; !has {
					return true
				}
			}
		}
		for name := range a.Resources.Limits { // its request is a default
			if _, has := b.Resources.Requests[name]; !has {
				if _, limited := b.Resources.Limits[name]; !limited {
					return true
				}
			}
		}
	}
	return false
}

// TestDiffPodProperty creates pods of random templates. A pod differs in nothing from its own template, and from
// another one in what the templates differ in.
func TestDiffPodProperty(t *testing.T) {
	r := newRand(t)
	blocked, changed := 0, 0
	for range 6_000 / fewer() {
		from := randomTemplate(r)
		if r.IntN(2) == 0 {
			from.Spec.ReadinessGates = nil
		}
		p := inplace.Policy{
			Env:            oneOf(r, inplace.EnvRestart, inplace.EnvBlock, inplace.EnvIgnore),
			Resources:      oneOf(r, inplace.ResourcesFixed, inplace.ResourcesReplaced, inplace.ResourcesAdded),
			NativeSidecars: r.IntN(2) == 0, InitImages: r.IntN(2) == 0, Tolerations: r.IntN(2) == 0,
			ActiveDeadline: r.IntN(2) == 0,
		}
		pod := created(r, from.DeepCopy())
		before := jsonOf(pod)
		if c, err := inplace.DiffPod(pod, from, p); err != nil || !c.Empty() {
			t.Fatalf("a pod differs from its template: %v, %v\nof  %s\npod %s", c, err, encoded(t, from), before)
		}
		to := from.DeepCopy()
		for range 1 + r.IntN(4) {
			mutate(r, to)
		}
		if drops(from.DeepCopy(), to.DeepCopy()) || hidden(from, to) {
			continue
		}
		want, wantErr := inplace.Diff(from, to, p)
		template := jsonOf(to)
		got, err := inplace.DiffPod(pod, to, p)
		if (err != nil) != (wantErr != nil) || err == nil && tidy(*want) != tidy(*got) {
			t.Fatalf("want %v, %v\ngot  %v, %v\nfrom %s\nto   %s\npod  %s\nby   %+v", want, wantErr, got, err,
				encoded(t, from), encoded(t, to), before, p)
		}
		if jsonOf(pod) != before || jsonOf(to) != template {
			t.Fatal("an input is changed")
		}
		if err != nil {
			blocked++
		} else if !got.Empty() {
			changed++
		}
	}
	if t.Logf("%d blocked, %d changed", blocked, changed); blocked < 200/fewer() || changed < 500/fewer() {
		t.Errorf("want enough of both, got %d blocked and %d changed", blocked, changed)
	}
}

// hidden reports whether a pull policy or a resize policy differs, which DiffPod leaves alone.
func hidden(from, to *corev1.PodTemplateSpec) bool {
	for _, pair := range pairs(from, to) {
		if pair[0].ImagePullPolicy != pair[1].ImagePullPolicy || len(pair[0].ResizePolicy) != len(pair[1].ResizePolicy) {
			return true
		}
	}
	return false
}

// TestDiffPod names what counts in a pod, and what does not.
func TestDiffPod(t *testing.T) {
	first := template(container("c1", "app:1", requests("cpu", "1"), limits("cpu", "1"), fed("A", "status.podIP")))
	spread := func(keys ...string) *metav1.LabelSelector {
		s := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		for _, key := range keys {
			s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{"web-1"},
			})
		}
		return s
	}
	spreads := func(s *metav1.LabelSelector) func(*corev1.PodSpec) {
		return func(p *corev1.PodSpec) {
			p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				TopologyKey: "zone", LabelSelector: s, MatchLabelKeys: []string{"hash"},
			}}
			p.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
					PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: s.DeepCopy(), MatchLabelKeys: []string{"hash"}},
				}},
			}}
		}
	}
	cases := map[string]struct {
		why      string
		pod      func(*corev1.PodSpec)
		template func(*corev1.PodSpec)
		want     []string
	}{
		"a container": {
			why:  "it may be one that the template has dropped",
			pod:  func(s *corev1.PodSpec) { s.Containers = append(s.Containers, container("injected", "proxy:1")) },
			want: []string{"spec.containers[injected]"},
		},
		"a variable": {
			why: "it may be one that the template has dropped",
			pod: func(s *corev1.PodSpec) {
				s.Containers[0].Env = append(s.Containers[0].Env, corev1.EnvVar{Name: "B", Value: "1"})
			},
			want: []string{"spec.containers[c1].env[B]"},
		},
		"a claim": {
			why: "the controller of the pod adds it",
			pod: func(s *corev1.PodSpec) { s.Volumes = append(s.Volumes, corev1.Volume{Name: "data"}) },
		},
		"a mount": {
			why: "a volume that the template has dropped has a mount",
			pod: func(s *corev1.PodSpec) {
				s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "a", MountPath: "/a"}}
			},
			want: []string{"spec.containers[c1].volumeMounts"},
		},
		"amounts": {
			why: "a LimitRange sets them",
			pod: func(s *corev1.PodSpec) { s.Containers[0].Resources.Limits["memory"] = amounts("x", "1Gi")["x"] },
		},
		"gates": {
			why:      "they are gone when the pod is scheduled",
			template: func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}} },
		},
		"label keys": {
			why: "the API server adds the values to the selectors", pod: spreads(spread("hash")), template: spreads(spread()),
		},
		"selectors": {
			why: "another expression counts", pod: spreads(spread("hash", "other")), template: spreads(spread()),
			want: []string{
				"spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm." +
					"labelSelector.matchExpressions",
				"spec.topologySpreadConstraints[zone].labelSelector.matchExpressions",
			},
		},
		"account": {
			why:  "admission sets the default account alone",
			pod:  func(s *corev1.PodSpec) { s.ServiceAccountName, s.DeprecatedServiceAccount = "other", "other" },
			want: []string{"spec.serviceAccount", "spec.serviceAccountName"},
		},
		"pull policy": {
			why: "the image in the pod was another when the default was set",
			pod: func(s *corev1.PodSpec) {
				s.Containers[0].Image, s.Containers[0].ImagePullPolicy = "app", corev1.PullIfNotPresent
			},
			template: func(s *corev1.PodSpec) { s.Containers[0].Image = "app" },
		},
		"never pulled": {
			why:  "this is no default",
			pod:  func(s *corev1.PodSpec) { s.Containers[0].ImagePullPolicy = corev1.PullNever },
			want: []string{"spec.containers[c1].imagePullPolicy"},
		},
		"node": {
			why:      "the template wants another one",
			pod:      func(s *corev1.PodSpec) { s.NodeName = "node-1" },
			template: func(s *corev1.PodSpec) { s.NodeName = "node-2" },
			want:     []string{"spec.nodeName"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod, to := running(first, "web-1"), first.DeepCopy()
			if c.pod != nil {
				c.pod(&pod.Spec)
			}
			if c.template != nil {
				c.template(&to.Spec)
			}
			change, err := inplace.DiffPod(pod, to, everything())
			if c.want == nil {
				if err != nil || !change.Empty() {
					t.Errorf("%s: got %v, %v", c.why, change, err)
				}
				return
			}
			if d := cmp.Diff(c.want, paths(t, err)); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, d)
			}
		})
	}
}

// TestDiffPodRecorded compares pods of a running cluster with the templates of their revisions.
func TestDiffPodRecorded(t *testing.T) {
	templates, n := recordedTemplates(t), 0
	for _, step := range []string{"1-created", "2-updating", "3-updated"} {
		for name, pod := range recorded(t, step) {
			if pod.Labels[kruise.PodRevisionLabelKey] == "" {
				continue
			}
			n++
			c, err := inplace.DiffPod(pod, templates(pod), everything())
			if err != nil || !c.Empty() {
				t.Errorf("%s/%s: %v, %v", step, name, c, err)
			}
		}
	}
	if n < 36 {
		t.Errorf("want all recorded pods with a revision, got %d", n)
	}
}

func ExampleDiffPod() {
	pod := webPod() // of nginx:1, with labels, annotations and a status of its own
	pod.Spec.NodeName, pod.Spec.ServiceAccountName = "node-1", "default"
	for _, image := range []string{"nginx:1", "nginx:2"} {
		change, err := inplace.DiffPod(pod, web(image, "info"), inplace.Policy{})
		fmt.Println(change.Empty(), change.Images, err)
	}
	// Output:
	// true map[] <nil>
	// false map[main:nginx:2] <nil>
}
