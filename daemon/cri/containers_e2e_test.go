//go:build e2e && linux

package cri_test

import (
	"errors"
	"testing"
	"time"

	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

// newContainer makes and starts a container, as a kubelet does.
func (g *ground) newContainer(t *testing.T, pod, name string, command ...string) (id, sandbox string) {
	t.Helper()
	g.mustPull(t, "registry.test/app:v1")
	// The first process of a namespace is not ended by a signal that it does not handle yet.
	host := &criv1.NamespaceOption{Network: criv1.NamespaceMode_NODE, Pid: criv1.NamespaceMode_CONTAINER}
	config := &criv1.PodSandboxConfig{
		Metadata: &criv1.PodSandboxMetadata{Name: pod, Namespace: "default", Uid: pod + "-uid"},
		Labels:   map[string]string{cri.LabelPodUID: pod + "-uid", cri.LabelPodName: pod, cri.LabelPodNamespace: "default"},
		Linux: &criv1.LinuxPodSandboxConfig{
			CgroupParent: "/" + g.node.Cgroup, SecurityContext: &criv1.LinuxSandboxSecurityContext{NamespaceOptions: host},
		},
	}
	made, err := g.kubelet.RunPodSandbox(t.Context(), &criv1.RunPodSandboxRequest{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	created, err := g.kubelet.CreateContainer(t.Context(), &criv1.CreateContainerRequest{
		PodSandboxId: made.PodSandboxId, SandboxConfig: config,
		Config: &criv1.ContainerConfig{
			Metadata:    &criv1.ContainerMetadata{Name: name},
			Image:       &criv1.ImageSpec{Image: "registry.test/app:v1"},
			Command:     command,
			Labels:      map[string]string{cri.LabelPodUID: pod + "-uid", cri.LabelContainerName: name},
			Annotations: map[string]string{annotationHash: "1f", cri.AnnotationRestartCount: "0"},
			Linux: &criv1.LinuxContainerConfig{
				SecurityContext: &criv1.LinuxContainerSecurityContext{NamespaceOptions: host},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.kubelet.StartContainer(t.Context(), &criv1.StartContainerRequest{
		ContainerId: created.ContainerId,
	}); err != nil {
		t.Fatal(err)
	}
	return created.ContainerId, made.PodSandboxId
}

func (g *ground) containers(t *testing.T) {
	id, sandbox := g.newContainer(t, "web", "main", "sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.1; done")
	g.newContainer(t, "other", "main")
	got, err := g.runtime.Containers(t.Context(), cri.Query{PodUID: "web-uid"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].ID != id || got[0].Name != "main" || got[0].SandboxID != sandbox ||
		got[0].State != cri.Running || got[0].StartedAt.Before(got[0].CreatedAt) || got[0].StartedAt.IsZero() ||
		!got[0].FinishedAt.IsZero() {
		t.Errorf("containers of the pod are %+v", got)
	}
	if hash := got[0].Annotations[annotationHash]; hash != "1f" {
		t.Errorf("hash is %q", hash)
	}
	if _, err := find(t.Context(), g.runtime, id[:12]); !errors.Is(err, cri.ErrNotFound) {
		t.Errorf("the beginning of an ID: %v", err)
	}
	if s, err := g.runtime.Sandbox(t.Context(), sandbox); err != nil || len(s.IPs) != 0 {
		t.Errorf("sandbox is %+v, %v", s, err)
	}
	g.exec(t, id)
	g.stop(t, id)
	for _, absent := range []func() error{
		func() error { _, err := g.runtime.Sandbox(t.Context(), "absent"); return err },
		func() error { _, err := find(t.Context(), g.runtime, "absent"); return err },
		func() error {
			_, err := g.runtime.Exec(t.Context(), "absent", cri.Command{Args: []string{"true"}})
			return err
		},
	} {
		wantOnly(t, absent(), cri.ErrNotFound)
	}
}

func (g *ground) exec(t *testing.T, id string) {
	t.Helper()
	got, err := g.runtime.Exec(t.Context(), id, cri.Command{
		Args: []string{"sh", "-c", "echo out; echo err >&2; exit 7"}, Timeout: eventually,
	})
	if err != nil || string(got.Stdout) != "out\n" || string(got.Stderr) != "err\n" || got.ExitCode != 7 || got.Truncated {
		t.Errorf("Exec = %+v, %v", got, err)
	}
	got, err = g.runtime.Exec(t.Context(), id, cri.Command{Args: []string{"sh", "-c", "yes | head -c 100000"}})
	if err != nil || len(got.Stdout) != cri.DefaultMaxOutput || !got.Truncated {
		t.Errorf("of much output %d bytes are left, %t, %v", len(got.Stdout), got.Truncated, err)
	}
	_, err = g.runtime.Exec(t.Context(), id, cri.Command{Args: []string{"sleep", "1000"}, Timeout: time.Second})
	wantOnly(t, err, cri.ErrExecTimeout)
}

func (g *ground) stop(t *testing.T, id string) {
	t.Helper()
	check := func(id string, code int32) {
		t.Helper()
		c, err := find(t.Context(), g.runtime, id)
		if err != nil || c.State != cri.Exited || c.ExitCode != code || c.FinishedAt.IsZero() {
			t.Errorf("stopped container is %+v, %v, want exit code %d", c, err, code)
		}
	}
	if err := g.runtime.Stop(t.Context(), id, eventually); err != nil {
		t.Error(err)
	}
	check(id, 3)
	if err := g.runtime.Stop(t.Context(), id, eventually); err != nil {
		t.Errorf("stop it again: %v", err)
	}
	stubborn, _ := g.newContainer(t, "stubborn", "main", "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
	if err := g.runtime.Stop(t.Context(), stubborn, time.Second); err != nil {
		t.Error(err)
	}
	check(stubborn, 137)
}
