package podprobe_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
)

func asked(pod *corev1.Pod, probes ...v1alpha1.PodContainerProbe) v1alpha1.PodProbe {
	p := v1alpha1.PodProbe{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID), IP: pod.Status.PodIP}
	for _, probe := range probes {
		p.Probes = append(p.Probes, v1alpha1.ContainerProbe{
			Name: probe.Name, ContainerName: probe.ContainerName, Probe: probe.Probe,
		})
	}
	return p
}

func TestDesired(t *testing.T) {
	pod, other := podOf("shop", "web-0", web()), podOf("shop", "web-1", web())
	healthy, idle := execOf("healthy", "true"), execOf("idle", "idle")
	change := func(change func(*corev1.Pod)) *corev1.Pod {
		p := pod.DeepCopy()
		change(p)
		return p
	}
	deleted := markerOf("shop", "ppm-1", "web", healthy)
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	cases := map[string]struct {
		why     string
		pods    []*corev1.Pod
		markers []*v1alpha1.PodProbeMarker
		asked   []v1alpha1.PodProbe
		want    []string
		notes   int
	}{
		"old first": {
			"a second marker appends its probe, acceptance 1",
			[]*corev1.Pod{pod},
			[]*v1alpha1.PodProbeMarker{markerOf("shop", "ppm-1", "web", healthy), markerOf("shop", "ppm-2", "web", idle)},
			[]v1alpha1.PodProbe{asked(pod, execOf("ppm-2#idle", "idle"))},
			[]string{"shop/web-0 10.0.0.1: ppm-2#idle=main/[idle] ppm-1#healthy=main/[true]"},
			0,
		},
		"not scheduled": {
			why:     "a pod without a node has no probes",
			pods:    []*corev1.Pod{change(func(p *corev1.Pod) { p.Spec.NodeName = "" })},
			markers: []*v1alpha1.PodProbeMarker{markerOf("shop", "ppm-1", "web", healthy)},
		},
		"deleted marker": {
			why:     "only the probes of a deleted marker leave, also where another name ends like it, acceptance 3",
			pods:    []*corev1.Pod{pod, other},
			markers: []*v1alpha1.PodProbeMarker{deleted, markerOf("shop", "my-ppm-1", "web", idle)},
			asked: []v1alpha1.PodProbe{
				asked(pod, execOf("ppm-1#healthy", "true"), execOf("my-ppm-1#idle", "idle")),
				asked(other, execOf("ppm-1#healthy", "true"), execOf("my-ppm-1#idle", "idle")),
			},
			want: []string{
				"shop/web-0 10.0.0.1: my-ppm-1#idle=main/[idle]", "shop/web-1 10.0.0.1: my-ppm-1#idle=main/[idle]",
			},
		},
		"changed": {
			why:     "a changed probe is replaced in its place, acceptance 4",
			pods:    []*corev1.Pod{pod},
			markers: []*v1alpha1.PodProbeMarker{markerOf("shop", "ppm-1", "web", execOf("a", "new"), execOf("b", "b"))},
			asked:   []v1alpha1.PodProbe{asked(pod, execOf("ppm-1#a", "old"), execOf("ppm-1#b", "b"))},
			want:    []string{"shop/web-0 10.0.0.1: ppm-1#a=main/[new] ppm-1#b=main/[b]"},
		},
		"ports": {
			why:  "names become numbers, and what cannot be resolved is left out, acceptance 5",
			pods: []*corev1.Pod{pod},
			markers: []*v1alpha1.PodProbeMarker{
				markerOf("shop", "p", "web", tcpOf("named", "main", intstr.FromString("main-port")),
					tcpOf("text", "main", intstr.FromString("8080")), tcpOf("sidecar", "init-2", intstr.FromString("mesh")),
					tcpOf("none", "main", intstr.FromString("x")), tcpOf("lost", "nowhere", intstr.FromString("main-port")),
					tcpOf("large", "main", intstr.FromString("65536")), tcpOf("number", "main", intstr.FromInt32(9))),
			},
			want:  []string{"shop/web-0 10.0.0.1: p#named=main/80 p#text=main/8080 p#sidecar=init-2/15000 p#number=main/9"},
			notes: 3,
		},
		"port lost": {
			why:     "a probe whose port is lost stays as it is",
			pods:    []*corev1.Pod{pod},
			markers: []*v1alpha1.PodProbeMarker{markerOf("shop", "p", "web", tcpOf("a", "main", intstr.FromString("x")))},
			asked:   []v1alpha1.PodProbe{asked(pod, tcpOf("p#a", "main", intstr.FromInt32(80)))},
			want:    []string{"shop/web-0 10.0.0.1: p#a=main/80"},
			notes:   1,
		},
		"lost IP": {
			why:     "a pod whose address is unknown for a moment keeps it",
			pods:    []*corev1.Pod{change(func(p *corev1.Pod) { p.Status.PodIP = "" })},
			markers: []*v1alpha1.PodProbeMarker{markerOf("shop", "ppm-1", "web", healthy)},
			asked:   []v1alpha1.PodProbe{asked(pod, execOf("ppm-1#healthy", "true"))},
			want:    []string{"shop/web-0 10.0.0.1: ppm-1#healthy=main/[true]"},
		},
		"malformed markers": {
			why:  "what admission rejects is left out",
			pods: []*corev1.Pod{pod},
			markers: []*v1alpha1.PodProbeMarker{
				{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "empty"}},
				markerOf("shop", "p", "web", healthy, healthy, execOf(""), execOf("a#b"), v1alpha1.PodContainerProbe{Name: "none"}),
			},
			want:  []string{"shop/web-0 10.0.0.1: p#healthy=main/[true]"},
			notes: 4,
		},
		"malformed selector": {
			why:  "an invalid selector selects nothing",
			pods: []*corev1.Pod{pod},
			markers: []*v1alpha1.PodProbeMarker{
				func() *v1alpha1.PodProbeMarker { m := markerOf("shop", "p", "a b", healthy); return m }(),
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := podprobe.Desired(podprobe.Node{Pods: c.pods, Markers: c.markers, Asked: c.asked})
			if diff := cmp.Diff(c.want, told(got.PodProbes)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if len(got.Notes) != c.notes {
				t.Errorf("notes %v, want %d", got.Notes, c.notes)
			}
			if again := podprobe.Desired(podprobe.Node{Pods: c.pods, Markers: c.markers, Asked: got.PodProbes}); again.Changed {
				t.Errorf("its own result changes: %v", told(again.PodProbes))
			}
		})
	}
}

// oracle computes the probes of each pod with sets alone: no order, nothing kept.
func oracle(n podprobe.Node) map[string]bool {
	want := map[string]bool{}
	for _, pod := range n.Pods {
		initialized := false
		for _, c := range pod.Status.Conditions {
			initialized = initialized || c.Type == "Initialized" && c.Status == "True"
		}
		alive := pod.DeletionTimestamp == nil && pod.Status.Phase != "Failed" && pod.Status.Phase != "Succeeded"
		for _, m := range n.Markers {
			if !alive || !initialized || m.DeletionTimestamp != nil || m.Namespace != pod.Namespace ||
				m.Spec.Selector.MatchLabels["app"] != pod.Labels["app"] {
				continue
			}
			for _, p := range m.Spec.Probes {
				want[fmt.Sprintf("%s %s %s %s", pod.UID, pod.Status.PodIP, m.Name+"#"+p.Name, p.Probe.Exec.Command)] = true
			}
		}
		for _, a := range n.Asked {
			for _, p := range a.Probes {
				if alive && a.UID == string(pod.UID) && !strings.Contains(p.Name, "#") {
					want[fmt.Sprintf("%s %s %s %s", pod.UID, pod.Status.PodIP, p.Name, p.Probe.Exec.Command)] = true
				}
			}
		}
	}
	return want
}

func randomNode(r *rand.Rand) podprobe.Node {
	n := podprobe.Node{}
	pick := func(all ...string) string { return all[r.Intn(len(all))] }
	for i := range r.Intn(6) {
		pod := podOf(pick("a", "b"), fmt.Sprintf("web-%d", i), map[string]string{"app": pick("web", "db")})
		pod.Status.Phase = corev1.PodPhase(pick("Running", "Running", "Running", "Pending", "Failed", "Succeeded"))
		pod.Status.PodIP = fmt.Sprintf("10.0.0.%d", r.Intn(3)+1)
		pod.Status.Conditions[0].Status = corev1.ConditionStatus(pick("True", "True", "True", "False", "Unknown"))
		if r.Intn(8) == 0 {
			pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		n.Pods = append(n.Pods, pod)
		if r.Intn(2) == 0 {
			old := asked(pod, execOf(pick("m0#p0", "m1#p1", "gone#p", "foreign"), pick("x", "y")))
			if r.Intn(4) == 0 {
				old.UID = "another"
			}
			n.Asked = append(n.Asked, old)
		}
	}
	for i := range r.Intn(4) {
		m := markerOf(pick("a", "b"), fmt.Sprintf("m%d", i), pick("web", "db"))
		for j := range r.Intn(3) {
			m.Spec.Probes = append(m.Spec.Probes, execOf(fmt.Sprintf("p%d", j), pick("x", "y")))
		}
		if r.Intn(6) == 0 {
			m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		n.Markers = append(n.Markers, m)
	}
	return n
}

func TestDesiredAgainstOracle(t *testing.T) {
	seed := time.Now().UnixNano()
	r := rand.New(rand.NewSource(seed))
	for range 3000 {
		n := randomNode(r)
		got := podprobe.Desired(n)
		is := map[string]bool{}
		for _, p := range got.PodProbes {
			if len(p.Probes) == 0 {
				t.Fatalf("seed %d: an entry has no probes: %v", seed, told(got.PodProbes))
			}
			for _, c := range p.Probes {
				is[fmt.Sprintf("%s %s %s %s", p.UID, p.IP, c.Name, c.Probe.Exec.Command)] = true
			}
		}
		if diff := cmp.Diff(oracle(n), is); diff != "" {
			t.Fatalf("seed %d (-oracle +got):\n%s", seed, diff)
		}
		r.Shuffle(len(n.Pods), func(i, j int) { n.Pods[i], n.Pods[j] = n.Pods[j], n.Pods[i] })
		r.Shuffle(len(n.Markers), func(i, j int) { n.Markers[i], n.Markers[j] = n.Markers[j], n.Markers[i] })
		if diff := cmp.Diff(told(got.PodProbes), told(podprobe.Desired(n).PodProbes)); diff != "" {
			t.Fatalf("seed %d: the order matters (-want +got):\n%s", seed, diff)
		}
		n.Asked = got.PodProbes
		if again := podprobe.Desired(n); again.Changed {
			t.Fatalf("seed %d: its own result changes:\n%s", seed, cmp.Diff(told(got.PodProbes), told(again.PodProbes)))
		}
	}
}

// A namespace that takes too much of a node loses probes, and another one keeps all of its own. What is escaped in a
// stored object takes more.
func TestDesiredIsBounded(t *testing.T) {
	for _, c := range []struct {
		text        string
		least, most int
	}{{"x", 150, 256}, {"\x01", 30, 45}, {"<", 30, 45}} {
		t.Run(strconv.Quote(c.text), func(t *testing.T) { testDesiredIsBounded(t, c.text, c.least, c.most) })
	}
}

func testDesiredIsBounded(t *testing.T, text string, least, most int) {
	t.Helper()
	n := podprobe.Node{Markers: []*v1alpha1.PodProbeMarker{markerOf("modest", "m", "web", execOf("p", "true"))}}
	for i := range 40 {
		n.Markers = append(n.Markers,
			markerOf("greedy", fmt.Sprintf("m-%02d", i), "web", execOf("p", "echo", strings.Repeat(text, 1000))))
	}
	for i := range 50 {
		n.Pods = append(n.Pods, podOf("greedy", fmt.Sprintf("web-%02d", i), web()),
			podOf("modest", fmt.Sprintf("web-%02d", i), web()))
	}
	got := podprobe.Desired(n)
	count := map[string]int{}
	for _, p := range got.PodProbes {
		count[p.Namespace] += len(p.Probes)
	}
	if count["modest"] != 50 || count["greedy"] < least || count["greedy"] > most {
		t.Errorf("probes by namespace: %v", count)
	}
	if len(got.Notes) == 0 || got.Notes[0].Code != podprobe.NoteFull {
		t.Errorf("notes: %v", got.Notes)
	}
	if stored, err := json.Marshal(got.PodProbes); err != nil || len(stored) > 600<<10 {
		t.Errorf("the probes take %d bytes (%v)", len(stored), err)
	}
	if n.Asked = got.PodProbes; podprobe.Desired(n).Changed {
		t.Error("its own result changes")
	}
}
