package simulated

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
	"time"
)

//go:embed stages
var stages embed.FS

const options = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
metadata:
  name: kwok
options:
  manageAllNodes: true
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
		"Lease": int(leaseDuration.Seconds()), "Parallelism": parallelism, "Grace": grace,
		// Between the binding of a pod and its containers running; half of what a container with another image takes, which
		// runs on for one half; and between taking on a resize and having done it.
		"Start": 500 * time.Millisecond, "Restart": 250 * time.Millisecond, "Resize": 500 * time.Millisecond,
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
