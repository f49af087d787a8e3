package simulated

import (
	"strings"
	"testing"
	"time"
)

func TestRendered(t *testing.T) {
	got, err := Config{MaxGrace: 1500 * time.Millisecond}.render()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`then "500ms"`, `then "250ms"`, `("1.5s" | seconds)`, "nodeLeaseDurationSeconds: 200", "name: node-ready",
		"name: pod-sync", "name: pod-terminate",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the configuration lacks %q", want)
		}
	}
	if strings.Contains(got, "[[") {
		t.Error("something is not filled in")
	}
}
