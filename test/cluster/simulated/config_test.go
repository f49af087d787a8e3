package simulated

import (
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	complete := Config{Kwok: "kwok", Kubeconfig: "admin", Dir: "here"}
	t.Run("what is required", func(t *testing.T) {
		for name, take := range map[string]func(*Config){
			"Kwok":       func(c *Config) { c.Kwok = "" },
			"Kubeconfig": func(c *Config) { c.Kubeconfig = "" },
			"Dir":        func(c *Config) { c.Dir = "" },
		} {
			c := complete
			take(&c)
			if _, err := c.withDefaults(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("without %s: got error %v, want one that names it", name, err)
			}
		}
	})
	t.Run("rendered", func(t *testing.T) {
		c := complete
		c.MaxGrace = 1500 * time.Millisecond
		c, err := c.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.render()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`then "500ms"`, `then "250ms"`, `("1.5s" | seconds)`, "nodeLeaseDurationSeconds: 40", "name: node-ready",
			"name: pod-sync", "name: pod-terminate", kubeletLabel + "=" + kubeletRuns,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("the configuration lacks %q", want)
			}
		}
		if strings.Contains(got, "[[") {
			t.Error("something is not filled in")
		}
	})
}
