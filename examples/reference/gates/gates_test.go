package gates_test

import (
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/examples/reference/gates"
)

func TestParse(t *testing.T) {
	cases := map[string]struct{ why, list, want string }{
		"none":          {"the default", "", ""},
		"as by default": {"naming a default changes nothing", "PodWebhook=true", ""},
		"one":           {"", "CloneSetShortHash=true", "CloneSetShortHash=true"},
		"spaces": {
			"a list in a manifest may be broken into lines", " CloneSetShortHash = true ,\n", "CloneSetShortHash=true",
		},
		"later wins": {"as with flags", "CloneSetShortHash=true,CloneSetShortHash=false", ""},
		"all beta": {
			"also those that are off", "AllBeta=true",
			"ResourceDistributionGate=true,ResourcesDeletionProtection=true",
		},
		"not of the reference": {
			"it needs rights that no manifest of the reference gives", "NativeRollouts=true", "NativeRollouts=true",
		},
		"named beats all": {
			"wherever it stands", "ResourceDistributionGate=false,AllBeta=true",
			"ResourcesDeletionProtection=true",
		},
		"pull for download": {
			"images are downloaded by pull jobs", "PreDownloadImageForInPlaceUpdate=true,ImagePullJobGate=false",
			"ImagePullJobGate=true,PreDownloadImageForInPlaceUpdate=true",
		},
		"no daemon": {
			"nobody pulls images", "KruiseDaemon=false,PreDownloadImageForInPlaceUpdate=true",
			"DaemonWatchingPod=false,InPlaceUpdateEnvFromMetadata=false,KruiseDaemon=false,PodProbeMarkerGate=false",
		},
		"no pod webhook": {
			"what is decided there", "PodWebhook=false",
			"PodUnavailableBudgetDeleteGate=false,PodWebhook=false,WorkloadSpread=false",
		},
		"no protection": {"a part of it", "DeletionProtectionForCRDCascadingGate=true", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g, err := gates.Parse(c.list)
			if err != nil {
				t.Fatal(err)
			}
			if got := g.String(); got != c.want {
				t.Errorf("%s: %q, want %q", c.why, got, c.want)
			}
			again, err := gates.Parse(g.String())
			if err != nil || again.String() != g.String() || len(again.Notes()) > len(g.Notes()) {
				t.Errorf("its string reads as %q: %v", again, err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for list, want := range map[string]string{
		"CloneSetShortHas=true": "no feature gate",
		"allalpha=true":         "no feature gate",
		"CloneSetShortHash":     "want name=true",
		"CloneSetShortHash=yes": "neither true nor false",
		"=true":                 "no feature gate",
	} {
		if _, err := gates.Parse(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", list, err, want)
		}
	}
}

func TestEveryGateHasAPlace(t *testing.T) {
	alpha, err := gates.Parse("AllAlpha=true,AllBeta=true")
	if err != nil {
		t.Fatal(err)
	}
	none, err := gates.Parse("AllAlpha=false,AllBeta=false")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(alpha.String(), "="), 27; got != want {
		t.Errorf("%d gates are off by default, want %d", got, want)
	}
	if got, want := strings.Count(none.String(), "="), 9; got != want {
		t.Errorf("%d gates are on by default, want %d", got, want)
	}
	if len(alpha.Notes()) > 0 {
		t.Errorf("with all on nothing follows, but %q", alpha.Notes())
	}
	if none.On(gates.PodWebhook) || !alpha.On(gates.PodWebhook) {
		t.Error("a gate is not as it was set")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("AllAlpha=true,KruiseDaemon=false")
	f.Fuzz(func(t *testing.T, list string) {
		g, err := gates.Parse(list)
		if err != nil {
			return
		}
		again, err := gates.Parse(g.String())
		if err != nil || again.String() != g.String() {
			t.Errorf("%q is %q, and that is %q: %v", list, g, again, err)
		}
	})
}
