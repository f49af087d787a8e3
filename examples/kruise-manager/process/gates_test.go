package process

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/controllers"
	"github.com/kruisekit/kruisekit/controllers/daemonset"
	"github.com/kruisekit/kruisekit/controllers/statefulset"
	"github.com/kruisekit/kruisekit/examples/kruise-manager/options"
	"github.com/kruisekit/kruisekit/examples/reference/gates"
	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/webhooks/imagepull"
)

func gatesOf(t *testing.T, list string) gates.Gates {
	t.Helper()
	g, err := gates.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func optionsOf(t *testing.T, args ...string) options.Options {
	t.Helper()
	o, err := options.Parse(args, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestAdmissionWithoutNodes: what the webhooks of kinds that work on nodes let in.
func TestAdmissionWithoutNodes(t *testing.T) {
	for list, c := range map[string]struct {
		why  string
		want imagepull.Options
	}{
		"":                      {"jobs are off by default, NodeImages are not", imagepull.Options{}},
		"ImagePullJobGate=true": {"asked for", imagepull.Options{Jobs: true}},
		"PreDownloadImageForInPlaceUpdate=true,ImagePullJobGate=false": {
			"a pre-download is a job", imagepull.Options{Jobs: true},
		},
		"PreDownloadImageForDaemonSetUpdate=true": {
			"a pre-download is a job", imagepull.Options{Jobs: true},
		},
		"KruiseDaemon=false":                                       {"nobody would pull", imagepull.Options{NoDaemon: true}},
		"KruiseDaemon=false,ImagePullJobGate=true":                 {"nobody would pull", imagepull.Options{NoDaemon: true}},
		"KruiseDaemon=false,PreDownloadImageForInPlaceUpdate=true": {"nobody would pull", imagepull.Options{NoDaemon: true}},
	} {
		t.Run(list, func(t *testing.T) {
			g := gatesOf(t, list)
			o := admission(g)
			if diff := cmp.Diff(c.want, o.ImagePull,
				cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Now" }, cmp.Ignore())); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.why, diff)
			}
			if o.ContainerRecreateRequest.NoDaemon != c.want.NoDaemon {
				t.Errorf("requests to restart containers: no daemon %v", o.ContainerRecreateRequest.NoDaemon)
			}
			if idle := withoutEffect(g); list == "ImagePullJobGate=true" && len(idle) > 0 {
				t.Errorf("%v have no effect", idle)
			}
		})
	}
}

// TestSidecarSets: what flags set reaches the reconciler.
func TestSidecarSets(t *testing.T) {
	for args, want := range map[string]bool{"": false, "--sidecarset-refresh-not-update": true} {
		o := optionsOf(t, strings.Fields(args)...)
		o.Webhook.Namespace = "ns"
		if got := sidecarSets(o); got.RefreshNotUpdate != want || got.Namespace != "ns" || got.Registerer == nil {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// TestDaemonSets: the flag of the reference says who binds pods, and the gate whether images are pulled ahead.
func TestDaemonSets(t *testing.T) {
	for args, want := range map[string]daemonset.Options{
		"":                                 {SkipQuiet: true},
		"--assign-pods-by-scheduler=false": {SkipQuiet: true, BindDirectly: true},
		"--daemonset-loose-budget":         {SkipQuiet: true, LooseBudget: true},
		"--feature-gates=DaemonSetPruneIneligibleNodes=true":      {SkipQuiet: true},
		"--feature-gates=PreDownloadImageForDaemonSetUpdate=true": {SkipQuiet: true, PreDownload: true},
	} {
		o := optionsOf(t, strings.Fields(args)...)
		got := daemonSets(o, nil)
		if got.BindDirectly != want.BindDirectly || got.PreDownload != want.PreDownload || got.SkipQuiet != want.SkipQuiet ||
			got.LooseBudget != want.LooseBudget {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// TestBroadcastJobs: the flag of the reference says who binds pods, and the gates of templates reach admission.
func TestBroadcastJobs(t *testing.T) {
	for args, want := range map[string]bool{
		"": false, "--assign-bcj-pods-by-scheduler": false, "--assign-bcj-pods-by-scheduler=false": true,
	} {
		o := optionsOf(t, strings.Fields(args)...)
		if got := broadcastJobs(o).Bind; got != want {
			t.Errorf("%q: bind %t", args, got)
		}
	}
	g := gatesOf(t, "TemplateNoDefaults=true")
	if !admission(g).BroadcastJob.TemplateNoDefaults {
		t.Error("templates get defaults")
	}
}

// What the gates say about new pods reaches both the webhook and what says which pods are sent there.
func TestPodGates(t *testing.T) {
	for list, want := range map[string]struct{ all, sorted, off bool }{
		"":                                      {},
		"KruisePodReadinessGate=true":           {all: true},
		"EnableSortSidecarContainerByName=true": {sorted: true},
		"PodWebhook=false":                      {off: true},
		"PodWebhook=false,KruisePodReadinessGate=true": {off: true},
	} {
		g := gatesOf(t, list)
		w, s := admission(g), podScope(options.Options{Gates: g})
		if w.NoPods != want.off || s.Off != want.off || w.Pod.Readiness.ForAll != want.all ||
			s.ReadinessGateForAll != want.all || w.Pod.Sidecars.SortContainers != want.sorted {
			t.Errorf("%q: webhook %+v (none: %t), scope %+v", list, w.Pod, w.NoPods, s)
		}
		if idle := withoutEffect(g); len(idle) > 0 && !want.off {
			t.Errorf("%v have no effect", idle)
		}
	}
}

// TestSpreadGates: the gate reaches the webhook of pods, the entries and the reconciler, and the flag both that count
// pods.
func TestSpreadGates(t *testing.T) {
	for args, want := range map[string]struct {
		off       bool
		versioned []string
	}{
		"":                                     {},
		"--feature-gates=WorkloadSpread=false": {off: true},
		"--feature-gates=PodWebhook=false":     {off: true},
		"--ws-enabled-versioned-status=deployment,cloneset": {versioned: []string{"deployment", "cloneset"}},
		"--ws-enabled-versioned-status=":                    {versioned: []string{}},
	} {
		o := optionsOf(t, strings.Fields(args)...)
		if w, s := admission(o.Gates), podScope(o); w.NoSpreads != want.off || s.NoSpreads != want.off ||
			slices.Contains(chosen(o), "-workloadspread") != want.off {
			t.Errorf("%q: webhook %t, scope %t, controllers %q", args, w.NoSpreads, s.NoSpreads, chosen(o))
		}
		if diff := cmp.Diff(want.versioned, o.VersionedSpreads); diff != "" {
			t.Errorf("%q (-want +got):\n%s", args, diff)
		}
	}
}

// Gates keep controllers from running, whatever the choice.
func TestChosen(t *testing.T) {
	for name, c := range map[string]struct {
		gates        string
		choice, want []string
	}{
		"by default": {
			"",
			[]string{"*"},
			[]string{"*", "-imagelistpulljob", "-imagepulljob", "-resourcedistribution", "-sidecarterminator"},
		},
		"empty is all": {
			"ImagePullJobGate=true,ResourceDistributionGate=true,SidecarTerminator=true", nil, []string{"*"},
		},
		"some": {
			"ImagePullJobGate=true", []string{"cloneset"}, []string{"cloneset", "-resourcedistribution", "-sidecarterminator"},
		},
		"pulls in the update": {
			"PreDownloadImageForInPlaceUpdate=true", []string{"*"}, []string{"*", "-resourcedistribution", "-sidecarterminator"},
		},
		"without a daemon": {
			"KruiseDaemon=false,ImagePullJobGate=true,SidecarTerminator=true",
			[]string{"*", "-cloneset"},
			[]string{
				"*", "-cloneset", "-containerrecreaterequest", "-imagelistpulljob", "-imagepulljob", "-nodeimage", "-nodepodprobe",
				"-podprobemarker",
				"-resourcedistribution", "-sidecarterminator",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := gatesOf(t, c.gates)
			got := chosen(options.Options{Controllers: c.choice, Gates: g})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("controllers (-want +got):\n%s", diff)
			}
			if err := controllers.Check(got); err != nil {
				t.Error(err)
			}
		})
	}
}

// A delay of 0 is not the same as no delay.
func TestNodeImageDelay(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, 0: -1} {
		if got := nodeImages(options.Options{NodeImageCreationDelay: given}).CreationDelay; got != want {
			t.Errorf("%s becomes %s", given, got)
		}
	}
}

// What is installed is stated once: no workload asks for a restart that no daemon makes, or for a resize that is off.
func TestInstalled(t *testing.T) {
	for list, want := range map[string]inplace.Installation{
		"":                                    {EnvDaemon: true},
		"InPlaceUpdateEnvFromMetadata=false":  {},
		"KruiseDaemon=false":                  {},
		"InPlaceWorkloadVerticalScaling=true": {EnvDaemon: true, Resize: true},
	} {
		g := gatesOf(t, list)
		if got := cloneSets(g, installed(g, resizing{})).Installed; *got != want {
			t.Errorf("%s: got %+v, want %+v", list, *got, want)
		}
		if got := statefulSets(options.Options{Gates: g}, installed(g, resizing{})).Installed; *got != want {
			t.Errorf("%s: StatefulSets: got %+v, want %+v", list, *got, want)
		}
	}
}

// The gates of StatefulSets reach the reconciler and the webhooks.
func TestStatefulSetGates(t *testing.T) {
	for list, want := range map[string]statefulset.Options{
		"": {},
		"StatefulSetStartOrdinal=true,StatefulSetAutoResizePVCGate=true": {
			StartOrdinal: true, ExpandClaims: true,
		},
		"StatefulSetAutoDeletePVC=false,PreparingUpdateAsUpdate=true,PreDownloadImageForInPlaceUpdate=true": {
			IgnoreRetention: true, PreparingUpdateIsUpdated: true, PreDownload: true,
		},
	} {
		g := gatesOf(t, list)
		got := statefulSets(options.Options{Gates: g}, nil)
		same := got.StartOrdinal == want.StartOrdinal && got.ExpandClaims == want.ExpandClaims &&
			got.IgnoreRetention == want.IgnoreRetention && got.PreparingUpdateIsUpdated == want.PreparingUpdateIsUpdated &&
			got.PreDownload == want.PreDownload
		if !same || admission(g).StatefulSet.ExpandClaims != want.ExpandClaims {
			t.Errorf("%s: got %+v, want %+v", list, got, want)
		}
	}
	for args, want := range map[string]bool{"": false, "--statefulset-unavailable-first": true} {
		o := optionsOf(t, strings.Fields(args)...)
		if got := statefulSets(o, nil).UnavailableFirst; got != want {
			t.Errorf("%q: unavailable first %t", args, got)
		}
	}
}
