package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each kustomization has the objects of the chart with the values beside it.
func TestSameObjects(t *testing.T) {
	noGates := "featureGates=''"
	for name, c := range map[string]struct {
		directories []string
		values      []string
		// flags of both processes that the kustomizations do not have.
		flags []any
	}{
		"without gates": {[]string{"default"}, []string{noGates, "aggregatedRoles.enabled=false"}, nil},
		"by default": {
			[]string{"default", "roles", "pulljobs"}, nil, []any{"--feature-gates=ImagePullJobGate=true"},
		},
		"without rollouts in place": {
			[]string{"base"}, []string{noGates, "aggregatedRoles.enabled=false", "nativeRollouts=false"}, nil,
		},
		"takeover": {
			[]string{"takeover"}, []string{noGates, "aggregatedRoles.enabled=false", "webhookConfiguration.catchAll=true"}, nil,
		},
		"metrics": {
			[]string{"metrics"}, []string{noGates, "aggregatedRoles.enabled=false", "metrics.secure=true"}, nil,
		},
		"rights of gates": {
			[]string{"default", "pulljobs", "resourcedistribution", "protection/instances"},
			[]string{
				"featureGates='AllAlpha=true,EnableExternalCerts=false,AllBeta=true'", "aggregatedRoles.enabled=false",
			},
			[]any{"--feature-gates=AllAlpha=true,EnableExternalCerts=false,AllBeta=true"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := render(c.values...)
			if err != nil {
				t.Fatal(err)
			}
			want := kustomized(t, c.directories...)
			for _, workload := range []string{
				"Deployment kruise-system/kruise-controller-manager", "DaemonSet kruise-system/kruise-daemon",
			} {
				container := containerOf(t, want[workload])
				args, _ := container["args"].([]any)
				container["args"] = append(args, c.flags...)
			}
			compare(t, want, got)
		})
	}
}

// The CRDs of the stored version alone are those of config/crd/v1beta1.
func TestSameStoredVersions(t *testing.T) {
	all, err := render("crds.storageVersionOnly=true")
	if err != nil {
		t.Fatal(err)
	}
	got := objects{}
	for id, o := range all {
		if o["kind"] == "CustomResourceDefinition" {
			spec, _ := o["spec"].(map[string]any)
			if conversion, _ := spec["conversion"].(map[string]any); conversion["strategy"] == "None" {
				delete(spec, "conversion") // the default
			}
			got[id] = o
		}
	}
	want := kustomized(t, "crd/v1beta1")
	for _, o := range want { // config/default adds it
		metadata(o)["labels"] = map[string]any{"app.kubernetes.io/part-of": "kruisekit"}
	}
	compare(t, want, got)
}

func containerOf(t *testing.T, workload map[string]any) map[string]any {
	t.Helper()
	at := workload
	for _, key := range []string{"spec", "template", "spec"} {
		at, _ = at[key].(map[string]any)
	}
	all, _ := at["containers"].([]any)
	if len(all) != 1 {
		t.Fatalf("%v has %d containers", identity(workload), len(all))
	}
	return all[0].(map[string]any)
}

func compare(t *testing.T, config, chart objects) {
	t.Helper()
	config, chart = comparable(config), comparable(chart)
	if len(config) < 18 {
		t.Fatalf("config has %d objects", len(config))
	}
	for id := range chart {
		if config[id] == nil {
			t.Errorf("the chart alone has %s", id)
		}
	}
	for id, o := range config {
		if diff := cmp.Diff(o, chart[id]); diff != "" {
			t.Errorf("%s differs (-config +chart):\n%s", id, diff)
		}
	}
}
