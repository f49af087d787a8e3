package workloads_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kruisekit/kruisekit/inplace"
	"github.com/kruisekit/kruisekit/internal/workloads"
)

func TestPolicy(t *testing.T) {
	for why, c := range map[string]struct {
		installed *inplace.Installation
		want      inplace.Policy
	}{
		"a daemon, and no resize": {nil, inplace.Policy{Env: inplace.EnvRestart, IgnoreResources: true}},
		"no daemon":               {&inplace.Installation{}, inplace.Policy{Env: inplace.EnvIgnore, IgnoreResources: true}},
		"all": {
			&inplace.Installation{EnvDaemon: true, Resize: true},
			inplace.Policy{Env: inplace.EnvRestart, Resources: inplace.ResourcesReplaced},
		},
	} {
		if diff := cmp.Diff(c.want, workloads.Policy(c.installed)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
}

func TestJudge(t *testing.T) {
	for why, c := range map[string]struct {
		paths             []string
		invalid, reported string
	}{
		"no fault": {nil, "", ""},
		"a safe reading": {
			[]string{"spec.updateStrategy.partition", "spec.minReadySeconds"}, "", "spec.updateStrategy.partition",
		},
		"unusable, whatever is before": {
			[]string{"spec.minReadySeconds", "spec.template.spec.containers"}, "spec.template.spec.containers", "",
		},
		"safe within what is not": {
			[]string{"spec.template.spec.readinessGates[0]"}, "", "spec.template.spec.readinessGates[0]",
		},
		"the plan compares the labels": {[]string{"spec.template.metadata.labels"}, "", ""},
		"labels, and something reported": {
			[]string{"spec.template.metadata.labels", "spec.minReadySeconds"}, "", "spec.minReadySeconds",
		},
		"the first of two that are fatal": {[]string{"spec.selector", "spec.template.spec"}, "spec.selector", ""},
	} {
		var faults field.ErrorList
		for _, path := range c.paths {
			faults = append(faults, field.Required(field.NewPath(path), ""))
		}
		text := func(path string) string {
			if path == "" {
				return ""
			}
			return field.Required(field.NewPath(path), "").Error()
		}
		message := func(err error) string {
			if err == nil {
				return ""
			}
			return err.Error()
		}
		invalid, reported := workloads.Judge(faults, []string{"spec.selector", "spec.template"}, []string{
			"spec.template.spec.readinessGates",
		})
		if message(invalid) != text(c.invalid) || message(reported) != text(c.reported) {
			t.Errorf("%s: invalid %v, reported %v", why, invalid, reported)
		}
	}
}
