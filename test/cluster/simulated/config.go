package simulated

import (
	"cmp"
	"embed"
	"fmt"
	"strings"
	"text/template"
	"time"
)

// Config says which nodes to simulate, where, and how fast.
type Config struct {
	// Kwok is the path of the KWOK binary (see test/cluster/binaries/kwok). Required.
	Kwok string
	// Kubeconfig is the path of an admin's kubeconfig. Required.
	Kubeconfig string
	// Dir takes the configuration and the log of KWOK. Required; it is created where missing.
	Dir string
	// Nodes is how many nodes Start creates.
	Nodes int
	// MaxGrace ends the containers of deleted pods before their grace period does. Zero honours the grace period.
	MaxGrace time.Duration

	// LeaseDuration of the nodes' leases, whose renewal after a quarter of it is a node's heartbeat. In whole seconds.
	// Defaults to the 40 seconds of a kubelet, which are 100 writes per second for 1,000 nodes.
	LeaseDuration time.Duration
	// Bound ends KWOK with this process, however that ends (on Linux).
	Bound bool
}

const (
	// startDelay passes between the binding of a pod and its containers running.
	startDelay = 500 * time.Millisecond
	// restartDelay passes twice between the change of an image and its container running again: at first the container
	// runs still.
	restartDelay = 250 * time.Millisecond
	// resizeDelay passes between the start of a resize and its end.
	resizeDelay = 500 * time.Millisecond
	// parallelism is how many writes KWOK has under way at a time.
	parallelism = 16
)

// withDefaults returns the configuration with its zero values replaced, or what is missing.
func (c Config) withDefaults() (Config, error) {
	for name, value := range map[string]string{"Kwok": c.Kwok, "Kubeconfig": c.Kubeconfig, "Dir": c.Dir} {
		if value == "" {
			return c, fmt.Errorf("simulated nodes: Config.%s is required", name)
		}
	}
	c.LeaseDuration = cmp.Or(c.LeaseDuration, 40*time.Second)
	return c, nil
}

//go:embed stages
var stages embed.FS

const options = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
metadata:
  name: kwok
options:
  manageNodesWithLabelSelector: ` + kubeletLabel + `=` + kubeletRuns + `
  # Wide enough that no pod of a large cluster gets another's address.
  cidr: 10.128.0.0/9
  nodeLeaseDurationSeconds: [[ .Lease ]]
  # KWOK defaults nothing in a file.
  enablePodsOnNodeSyncListPager: false
  enablePodsOnNodeSyncStreamWatch: false
  podPlayStageParallelism: [[ .Parallelism ]]
  nodePlayStageParallelism: [[ .Parallelism ]]
  nodeLeaseParallelism: [[ .Parallelism ]]
  podsOnNodeSyncParallelism: [[ .Parallelism ]]
`

// render returns KWOK's configuration. Stages cannot share expressions among each other, so the files they are written
// in name theirs between double square brackets, which mean nothing to jq and to the templates inside.
func (c Config) render() (string, error) {
	grace := "87600h"
	if c.MaxGrace > 0 {
		grace = fmt.Sprintf("%gs", c.MaxGrace.Seconds())
	}
	values := map[string]any{
		"Lease": int(c.LeaseDuration.Seconds()), "Parallelism": parallelism,
		"Start": startDelay, "Restart": restartDelay, "Resize": resizeDelay, "Grace": grace,
	}
	// In this order: what is named later may name what came before.
	for _, part := range []struct{ name, file string }{
		{"Seconds", "seconds.jq"},
		{"Due", "due.jq"},
		{"Termination", "termination.jq"},
		{"Status", "status.tpl"},
		{"Ended", "ended.tpl"},
		{"Node", "node.yaml"},
		{"Pod", "pod.yaml"},
	} {
		text, err := stages.ReadFile("stages/" + part.file)
		if err != nil {
			return "", fmt.Errorf("read stages: %w", err)
		}
		if values[part.name], err = fill(part.file, string(text), values); err != nil {
			return "", err
		}
	}
	return fill("options", options+"---\n[[ .Node ]]\n---\n[[ .Pod ]]\n", values)
}

func fill(name, text string, values map[string]any) (string, error) {
	indent := func(n int, s string) string {
		pad := strings.Repeat(" ", n)
		return pad + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n"+pad)
	}
	parsed, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").
		Funcs(template.FuncMap{"indent": indent}).Parse(text)
	if err != nil {
		return "", fmt.Errorf("parse stages: %w", err)
	}
	var out strings.Builder
	if err := parsed.Execute(&out, values); err != nil {
		return "", fmt.Errorf("fill in stages: %w", err)
	}
	return out.String(), nil
}
