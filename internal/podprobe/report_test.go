package podprobe_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
)

var reportTime = time.Unix(1_800_000_000, 0)

func finding(state v1alpha1.ProbeState, message string, after time.Duration) podprobe.Memory {
	return podprobe.Memory{State: state, Message: message, At: reportTime.Add(after)}
}

// toldStatus is a status in short: pod: probe=state(message) since/at in seconds after reportTime.
func toldStatus(s v1alpha1.NodePodProbeStatus) []string {
	var lines []string
	for _, p := range s.PodProbeStatuses {
		line := p.Name + ":"
		for _, c := range p.ProbeStates {
			line += fmt.Sprintf(" %s=%s(%s)%d/%d",
				c.Name, c.State, c.Message, c.LastTransitionTime.Unix()-reportTime.Unix(), c.LastProbeTime.Unix()-reportTime.Unix())
		}
		lines = append(lines, line)
	}
	return lines
}

// TestReport makes one report after the other, and sends each as the patch that it is.
func TestReport(t *testing.T) {
	web, db := podOf("shop", "web", nil), podOf("shop", "db", nil)
	a, b := podprobe.Key{UID: string(web.UID), Name: "m#a"}, podprobe.Key{UID: string(db.UID), Name: "m#b"}
	both := v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{
		asked(web, execOf("m#a"), execOf("m#c")), asked(db, execOf("m#b")),
	}}
	less := v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{asked(db, execOf("m#b"))}}
	steps := []struct {
		why      string
		spec     v1alpha1.NodePodProbeSpec
		findings map[podprobe.Key]podprobe.Memory
		want     []string
		flips    int
		urgency  podprobe.Urgency
		patch    types.PatchType
	}{
		{
			why:      "probes without a state are left out",
			spec:     both,
			findings: map[podprobe.Key]podprobe.Memory{b: finding("Unknown", "", 0)},
			want:     []string{"db: m#b=Unknown()0/0"},
			flips:    1,
			urgency:  podprobe.Flipped,
			patch:    types.MergePatchType,
		},
		{
			why:      "a new pod is added, acceptance 17",
			spec:     both,
			findings: map[podprobe.Key]podprobe.Memory{a: finding("Failed", "no", 1e9), b: finding("Unknown", "", 0)},
			want:     []string{"web: m#a=Failed(no)1/1", "db: m#b=Unknown()0/0"},
			flips:    1,
			urgency:  podprobe.Flipped,
			patch:    types.MergePatchType,
		},
		{
			why:      "the same needs no patch",
			spec:     both,
			findings: map[podprobe.Key]podprobe.Memory{a: finding("Failed", "no", 1e9), b: finding("Unknown", "", 0)},
			want:     []string{"web: m#a=Failed(no)1/1", "db: m#b=Unknown()0/0"},
			urgency:  podprobe.Unchanged,
		},
		{
			why:      "a flip is urgent",
			spec:     both,
			findings: map[podprobe.Key]podprobe.Memory{a: finding("Succeeded", "ok", 5e9), b: finding("Unknown", "", 0)},
			want:     []string{"web: m#a=Succeeded(ok)5/5", "db: m#b=Unknown()0/0"},
			flips:    1,
			urgency:  podprobe.Flipped,
			patch:    types.MergePatchType,
		},
		{
			why:      "another message is no flip",
			spec:     both,
			findings: map[podprobe.Key]podprobe.Memory{a: finding("Succeeded", "better", 7e9), b: finding("Unknown", "", 0)},
			want:     []string{"web: m#a=Succeeded(better)5/7", "db: m#b=Unknown()0/0"},
			urgency:  podprobe.Reworded,
			patch:    types.MergePatchType,
		},
		{
			why:      "a refreshed result is less urgent",
			spec:     both,
			findings: map[podprobe.Key]podprobe.Memory{a: finding("Succeeded", "better", 607e9), b: finding("Unknown", "", 0)},
			want:     []string{"web: m#a=Succeeded(better)5/607", "db: m#b=Unknown()0/0"},
			urgency:  podprobe.Aged,
			patch:    types.MergePatchType,
		},
		{
			why:     "a restarted daemon keeps what it does not know",
			spec:    both,
			want:    []string{"web: m#a=Succeeded(better)5/607", "db: m#b=Unknown()0/0"},
			urgency: podprobe.Unchanged,
		},
		{
			why:      "what is not asked for any more leaves, acceptance 17",
			spec:     less,
			findings: map[podprobe.Key]podprobe.Memory{a: finding("Failed", "", 9e9)},
			want:     []string{"db: m#b=Unknown()0/0"},
			urgency:  podprobe.Flipped,
			patch:    types.MergePatchType,
		},
	}
	n := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "n1", ResourceVersion: "7"}}
	for _, s := range steps {
		status, flips := podprobe.Report(podprobe.Reporting{Spec: &s.spec, Status: &n.Status, Findings: s.findings})
		if diff := cmp.Diff(s.want, toldStatus(status)); diff != "" || len(flips) != s.flips {
			t.Errorf("%s: %d flips, want %d (-want +got):\n%s", s.why, len(flips), s.flips, diff)
		}
		if got := podprobe.Compare(&n.Status, &status); got != s.urgency {
			t.Errorf("%s: urgency %d, want %d", s.why, got, s.urgency)
		}
		w := podprobe.StatusWrite(n, status)
		if (w == nil) != (s.patch == "") || w != nil && w.Type != s.patch {
			t.Fatalf("%s: write %+v, want %q", s.why, w, s.patch)
		}
		if w == nil {
			continue
		}
		patch, err := w.Data()
		if err != nil {
			t.Fatal(err)
		}
		n = patched(t, n, patch)
		if diff := cmp.Diff(s.want, toldStatus(n.Status)); diff != "" {
			t.Errorf("%s: stored (-want +got):\n%s", s.why, diff)
		}
	}
}

func patched(t *testing.T, n *v1alpha1.NodePodProbe, patch []byte) *v1alpha1.NodePodProbe {
	t.Helper()
	before, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		t.Fatal(err)
	}
	is := &v1alpha1.NodePodProbe{}
	if err := json.Unmarshal(after, is); err != nil {
		t.Fatal(err)
	}
	return is
}

// A node with the most probes has a status that an API server stores, whatever the probes print.
func TestReportIsBounded(t *testing.T) {
	for _, text := range []string{"x", "\x01", "<", `"`, "漢", "\xff"} {
		t.Run(strconv.Quote(text), func(t *testing.T) { testReportIsBounded(t, text) })
	}
}

func testReportIsBounded(t *testing.T, text string) {
	t.Helper()
	n := podprobe.Node{}
	for _, namespace := range []string{"shop", "mall"} {
		for i := range 8 {
			n.Markers = append(n.Markers,
				markerOf(namespace, fmt.Sprintf("m%d", i), "web", execOf("a", "true"), execOf("b", "true")))
		}
		for i := range 50 {
			n.Pods = append(n.Pods, podOf(namespace, fmt.Sprintf("web-%d", i), web()))
		}
	}
	spec := v1alpha1.NodePodProbeSpec{PodProbes: podprobe.Desired(n).PodProbes}
	findings := map[podprobe.Key]podprobe.Memory{}
	for _, p := range spec.PodProbes {
		for _, c := range p.Probes {
			findings[podprobe.Key{UID: p.UID, Name: c.Name}] = finding("Failed", strings.Repeat(text, 5000), 0)
		}
	}
	status, _ := podprobe.Report(podprobe.Reporting{
		Spec: &spec, Status: &v1alpha1.NodePodProbeStatus{}, Findings: findings,
	})
	stored, err := json.Marshal(v1alpha1.NodePodProbe{Spec: spec, Status: status})
	if err != nil {
		t.Fatal(err)
	}
	if len(findings) < 900 || len(stored) > 1400<<10 {
		t.Errorf("%d probes take %d bytes", len(findings), len(stored))
	}
}
