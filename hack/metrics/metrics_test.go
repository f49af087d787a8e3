package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The table of the page is what the code has.
func TestPageIsCurrent(t *testing.T) {
	all, err := collect("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 34 {
		t.Errorf("the code has only %d metrics: a form of theirs is not understood", len(all))
	}
	for _, m := range all {
		if m.kind == "" || m.help == "" || slices.Contains(m.labels, "") {
			t.Errorf("%s is not understood: %+v", m.name, m)
		}
	}
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := replace(string(text), all)
	if err != nil {
		t.Fatal(err)
	}
	if want != string(text) {
		t.Error("stale: run go run ./hack/metrics, and say in the new rows what the metrics mean")
	}
}

// Each form in which the code makes metrics.
func TestForms(t *testing.T) {
	all, err := collect("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"kruise_manager_is_leader":                      "gauge ",
		"kruise_manager_build_info":                     "gauge version,goversion",
		"kruisekit_controllers_left_out":                "gauge controller",
		"kruisekit_pod_scope_entries":                   "gauge webhook",
		"kruisekit_pod_scope_repairs_total":             "counter ",
		"kruisekit_pod_webhook_step_duration_seconds":   "histogram step",
		"kruisekit_sidecarset_pods_lacking_containers":  "gauge sidecarset",
		"kruise_daemon_image_filesystem_free_ratio":     "gauge ",
		"workload_deletion_protection":                  "counter kind_namespace_name,username",
		"kruisekit_deletion_protection_refused_total":   "counter group,kind,code",
		"kruise_daemon_container_stops_total":           "counter outcome",
		"pod_unavailable_budget":                        "counter kind_namespace_name,username",
		"kruise_daemon_image_pull_attempts_total":       "counter result",
		"kruisekit_connections_refused_total":           "counter listener",
		"kruisekit_workloads_stalled":                   "gauge kind,status,reason",
		"kruise_daemon_image_filesystem_min_free_ratio": "gauge ",
	} {
		i := slices.IndexFunc(all, func(m metric) bool { return m.name == name })
		if i < 0 {
			t.Errorf("%s is not found", name)
			continue
		}
		if got := all[i].kind + " " + strings.Join(all[i].labels, ","); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
