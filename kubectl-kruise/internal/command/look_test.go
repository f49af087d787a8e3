package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/apitest"
	"github.com/kruisekit/kruisekit/kubectl-kruise/internal/command"
)

func TestLook(t *testing.T) {
	web := []string{cloneSet, podOf("web-a"), sidecarSet}
	try(t, map[string]row{
		"get all lists our kinds":         {objects: web, args: "get all", out: "cloneset.apps.kruise.io/web"},
		"get of other kinds is kubectl's": {objects: web, args: "get pods -o name", out: "pod/web-a\n"},
		"describe is kubectl's": {
			objects: web, args: "describe cloneset web", out: "API Version:  apps.kruise.io/VERSION",
		},
		"describe rollout": {
			objects: append([]string{`{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {name: demo, namespace: default},
				spec: {workloadRef: {apiVersion: apps.kruise.io/VERSION, kind: CloneSet, name: web},
					strategy: {canary: {steps: [{replicas: 1}, {replicas: 50%, traffic: 50%}]}}},
				status: {phase: Progressing, canaryStatus: {currentStepIndex: 2, currentStepState: StepPaused}}}`}, web...),
			args: "describe rollout demo", out: "Step:        2/2\nSteps:\n  1.",
		},
		"version": {args: "version", out: "Client Version: \nServer Version: v1.34.1\n"},
	})
}

// Every command has a place in the help, and completes.
func TestHelp(t *testing.T) {
	server := apitest.New(t, "v1beta1", object(t, "v1beta1", cloneSet))
	got := server.Run(t, command.New, "--help")
	for _, name := range []string{
		"create", "expose", "scale", "autoscale", "get", "describe", "rollout", "set", "migrate", "scaledown", "exec",
		"status", "watch", "explain", "restart", "pull", "protect", "unprotect", "pause-all", "diagnose",
		"diff", "apply", "patch", "replace", "wait", "kustomize", "completion", "config", "plugin", "version",
		"api-resources",
	} {
		if !strings.Contains(got.Out, "\n  "+name+" ") {
			t.Errorf("the help lacks %s: %s", name, got.Out)
		}
	}
	if got := server.Run(t, command.New, "completion", "bash"); !strings.Contains(got.Out, "__start_kubectl-kruise") {
		t.Errorf("no completion: %v", got.Err)
	}
	got = server.Run(t, command.New, "__complete", "rollout", "pause", "cloneset", "")
	if !strings.HasPrefix(got.Out, "web\n") {
		t.Errorf("completion of names: %q %v", got.Out, got.Err)
	}
}

func TestProfile(t *testing.T) {
	server := apitest.New(t, "v1beta1")
	for _, name := range []string{"cpu", "heap", "mutex"} {
		file := filepath.Join(t.TempDir(), name)
		got := server.Run(t, command.New, "version", "--client", "--profile", name, "--profile-output", file)
		if written, err := os.Stat(file); err != nil || got.Err != nil || written.Size() == 0 {
			t.Errorf("%s: %v, %v", name, err, got.Err)
		}
	}
	if got := server.Run(t, command.New, "version", "--client", "--profile", "other"); got.Err == nil {
		t.Error("an unknown profile is no error")
	}
}
