package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kruisekit/kruisekit/protection"
	"github.com/kruisekit/kruisekit/webhooks/deletion"
	"github.com/kruisekit/kruisekit/webhooks/disruption"
)

// Gates decide what is protected, under every combination of them.
func TestProtectionGates(t *testing.T) {
	on := "ResourcesDeletionProtection=true"
	cases := map[string]struct {
		why  string
		want protection.Policy
	}{
		"":                         {"protection is off by default", protection.Policy{Disabled: true}},
		on:                         {"definitions with the value Cascading are refused", protection.Policy{}},
		"PodWebhook=false," + on:   {"the webhook of pods is another one", protection.Policy{}},
		on + ",KruiseDaemon=false": {"nothing here needs a daemon", protection.Policy{}},
		on + ",DeletionProtectionForCRDCascadingGate=true": {
			"instances are counted", protection.Policy{CountInstances: true},
		},
		"DeletionProtectionForCRDCascadingGate=true": {"it is a part of the other", protection.Policy{Disabled: true}},
		"AllAlpha=true,AllBeta=true":                 {"both are on", protection.Policy{CountInstances: true}},
	}
	for list, c := range cases {
		g := gatesOf(t, list)
		o := admission(g).Deletion
		if diff := cmp.Diff(c.want, o.Policy); diff != "" || o.Registerer == nil {
			t.Errorf("%q: %s (-want +got):\n%s", list, c.why, diff)
		}
		if idle := withoutEffect(g); strings.HasSuffix(list, "CascadingGate=true") && len(idle) > 0 {
			t.Errorf("%q: %v have no effect", list, idle)
		}
	}
}

// Flags name the users and the file. A directory that cannot be made ends the start.
func TestProtectionFlags(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	o := optionsOf(t,
		"--protection-exempt-users=a, system:b", "--protection-hold-namespaces", "--protection-log-path="+dir)
	a, err := newAudit(t.Context(), o.Protection)
	if err != nil {
		t.Fatal(err)
	}
	got := guarded(deletion.Options{}, o.Protection, a)
	if diff := cmp.Diff(protection.Policy{ExemptUsers: []string{"a", "system:b"}, HoldNamespaces: true},
		got.Policy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	got.Audit(deletion.Record{Event: "DeletionProtection", Kind: "Namespace", Name: "shop", UserAgent: "tenant"})
	a.disruption(disruption.Refusal{
		Event: "PodUnavailableBudget", Kind: "CloneSet", Namespace: "shop", Name: "web", User: "tenant",
	})
	text, err := os.ReadFile(filepath.Join(dir, "protection.log"))
	want := `{"Event":"DeletionProtection","Kind":"Namespace","Namespace":"","Name":"shop","UserAgent":"tenant"}` + "\n" +
		`{"Event":"PodUnavailableBudget","Kind":"CloneSet","Namespace":"shop","Name":"web","UserAgent":"tenant"}` + "\n"
	if diff := cmp.Diff(want, string(text)); err != nil || diff != "" {
		t.Errorf("protection.log: %v (-want +got):\n%s", err, diff)
	}
	o.Protection.LogPath = filepath.Join(dir, "protection.log", "below")
	if _, err := newAudit(t.Context(), o.Protection); err == nil {
		t.Error("a directory below a file was made")
	}
}

// The file does not grow without end, and a restart continues it.
func TestProtectionLogRotates(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		l, err := openProtectionLog(dir, 8)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range []string{"a", "b", "c"} { // of four bytes each
			if err := l.add(record); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, name := range []string{"protection.log.1", "protection.log"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	if diff := cmp.Diff([]string{"\"c\"\n\"a\"\n", "\"b\"\n\"c\"\n"}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
