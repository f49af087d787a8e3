package cri_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criv1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

// annotationHash is an annotation that kubelets put on containers: the hash of the container's spec, hexadecimal.
const annotationHash = "io.kubernetes.container.hash"

func TestContainers(t *testing.T) {
	ended := container("c2", "pod-1", "web", 200)
	ended.State, ended.FinishedAt, ended.ExitCode = criv1.ContainerState_CONTAINER_EXITED, 300, 137
	ended.Reason = "OOMKilled"
	ended.Annotations = map[string]string{annotationHash: "ff", cri.AnnotationRestartCount: "3"}
	fresh := container("c3", "pod-1", "web", 400)
	fresh.State, fresh.StartedAt = criv1.ContainerState_CONTAINER_CREATED, 0
	odd := container("c6", "pod-2", "odd", 600)
	odd.State = criv1.ContainerState(77)
	f := &fake{containers: []*criv1.ContainerStatus{
		container("c1", "pod-1", "sidecar", 100), ended, fresh, container("c4", "pod-2", "web", 500), odd,
	}}
	r, _ := start(t, f, cri.Options{})

	tests := map[string]struct {
		query cri.Query
		want  []string
	}{
		"all of the node, the newest first":       {cri.Query{}, []string{"c6", "c4", "c3", "c2", "c1"}},
		"those of a pod":                          {cri.Query{PodUID: "pod-1"}, []string{"c3", "c2", "c1"}},
		"those of a name in a pod":                {cri.Query{PodUID: "pod-1", Name: "web"}, []string{"c3", "c2"}},
		"one":                                     {cri.Query{ID: "c4"}, []string{"c4"}},
		"the beginning of an ID is not the ID":    {cri.Query{ID: "c"}, []string{}},
		"what nobody has":                         {cri.Query{PodUID: "pod-3"}, []string{}},
		"an ID and a pod that do not go together": {cri.Query{ID: "c4", PodUID: "pod-1"}, []string{}},
	}
	for why, tt := range tests {
		t.Run(why, func(t *testing.T) {
			got, err := r.Containers(t.Context(), tt.query)
			if err != nil {
				t.Fatal(err)
			}
			ids := make([]string, 0, len(got))
			for _, c := range got {
				ids = append(ids, c.ID)
			}
			if diff := cmp.Diff(tt.want, ids); diff != "" {
				t.Error(diff)
			}
		})
	}

	got, err := find(t.Context(), r, "c2")
	if err != nil {
		t.Fatal(err)
	}
	want := cri.Container{
		ID: "c2", Name: "web", SandboxID: "sandbox-of-c2", State: cri.Exited,
		CreatedAt: time.Unix(0, 200), StartedAt: time.Unix(0, 201), FinishedAt: time.Unix(0, 300),
		ExitCode: 137, Reason: "OOMKilled",
		Labels: ended.Labels, Annotations: ended.Annotations,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	states := map[string]cri.State{"c1": cri.Running, "c3": cri.Created, "c6": cri.Unknown}
	for id, want := range states {
		got, err := find(t.Context(), r, id)
		if err != nil || got.State != want {
			t.Errorf("state of %s is %v, %v; want %v", id, got.State, err, want)
		}
	}
	if got, _ := find(t.Context(), r, "c3"); !got.StartedAt.IsZero() {
		t.Errorf("c3 has never started, not at %s", got.StartedAt)
	}
	for _, id := range []string{"", "c", "c9"} {
		_, err := find(t.Context(), r, id)
		wantError(t, err, cri.ErrNotFound)
	}
}

func TestContainersThatVanishAreLeftOut(t *testing.T) {
	f := &fake{containers: []*criv1.ContainerStatus{container("c1", "p", "a", 1), container("c2", "p", "b", 2)}}
	asked := 0
	f.before = func(_ context.Context, method string) error {
		if method != criv1.RuntimeService_ContainerStatus_FullMethodName {
			return nil
		}
		if asked++; asked == 1 {
			return status.Error(codes.NotFound, "gone")
		}
		return nil
	}
	r, _ := start(t, f, cri.Options{})
	got, err := r.Containers(t.Context(), cri.Query{})
	if err != nil || len(got) != 1 || got[0].ID != "c2" {
		t.Errorf("Containers = %v, %v, want c2 alone", got, err)
	}
}

func TestRestartCount(t *testing.T) {
	for text, want := range map[string]int32{"": 0, "16": 16, "x": 0, "99999999999": 0} {
		c := cri.Container{Annotations: map[string]string{cri.AnnotationRestartCount: text}}
		if got, ok := c.RestartCount(); ok != (want != 0) || ok && got != want {
			t.Errorf("of %q it is %d, %t", text, got, ok)
		}
	}
}

func TestStopAsksInWholeSeconds(t *testing.T) {
	f := &fake{containers: []*criv1.ContainerStatus{container("c1", "p", "a", 1)}}
	r, _ := start(t, f, cri.Options{})
	for grace, want := range map[time.Duration]int64{
		-time.Second: 0, 0: 0, time.Millisecond: 1, time.Second: 1, 1001 * time.Millisecond: 2, 30 * time.Second: 30,
	} {
		if err := r.Stop(t.Context(), "c1", grace); err != nil {
			t.Fatal(err)
		}
		if got := last[*criv1.StopContainerRequest](f); got.Timeout != want || got.ContainerId != "c1" {
			t.Errorf("a grace of %s is asked for as %v, want %d", grace, got, want)
		}
	}
	wantError(t, r.Stop(t.Context(), "c2", 0), cri.ErrNotFound)
}

func TestExec(t *testing.T) {
	f := &fake{}
	r, _ := start(t, f, cri.Options{})
	long := bytes.Repeat([]byte("x"), cri.DefaultMaxOutput+1)
	tests := map[string]struct {
		command cri.Command
		answer  *criv1.ExecSyncResponse
		err     error
		seconds int64
		want    cri.Output
		wantErr error
	}{
		"what it prints": {
			command: cri.Command{Args: []string{"ls", "-l"}, Timeout: 1500 * time.Millisecond}, seconds: 2,
			answer: &criv1.ExecSyncResponse{Stdout: []byte("a"), Stderr: []byte("b"), ExitCode: 2},
			want:   cri.Output{Stdout: []byte("a"), Stderr: []byte("b"), ExitCode: 2},
		},
		"no limit": {command: cri.Command{Args: []string{"x"}}, answer: &criv1.ExecSyncResponse{}},
		"too much of one": {
			command: cri.Command{Args: []string{"x"}}, answer: &criv1.ExecSyncResponse{Stdout: long, Stderr: long[1:]},
			want: cri.Output{Stdout: long[1:], Stderr: long[1:], Truncated: true},
		},
		"a bound of one's own": {
			command: cri.Command{Args: []string{"x"}, MaxOutput: 2}, answer: &criv1.ExecSyncResponse{Stderr: []byte("abc")},
			want: cri.Output{Stderr: []byte("ab"), Truncated: true},
		},
		"a larger bound": {
			command: cri.Command{Args: []string{"x"}, MaxOutput: 1 << 20}, answer: &criv1.ExecSyncResponse{Stdout: long},
			want: cri.Output{Stdout: long},
		},
		"the runtime has killed it": {
			command: cri.Command{Args: []string{"x"}, Timeout: time.Second},
			seconds: 1,
			err:     status.Error(codes.DeadlineExceeded, "timeout 1s exceeded: context deadline exceeded"),
			wantErr: cri.ErrExecTimeout,
		},
		"no such container": {
			command: cri.Command{Args: []string{"x"}}, err: status.Error(codes.NotFound, "x"), wantErr: cri.ErrNotFound,
		},
		"Docker has no code for it": {
			command: cri.Command{Args: []string{"x"}},
			err:     errors.New("Error response from daemon: No such container: 0f3c"), wantErr: cri.ErrNotFound,
		},
	}
	for why, tt := range tests {
		t.Run(why, func(t *testing.T) {
			f.exec = func(context.Context, *criv1.ExecSyncRequest) (*criv1.ExecSyncResponse, error) {
				return tt.answer, tt.err
			}
			got, err := r.Exec(t.Context(), "c1", tt.command)
			wantError(t, err, tt.wantErr)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			asked := last[*criv1.ExecSyncRequest](f)
			if asked.ContainerId != "c1" || asked.Timeout != tt.seconds || !slices.Equal(asked.Cmd, tt.command.Args) {
				t.Errorf("asked for %v", asked)
			}
		})
	}
	for _, wrong := range []cri.Command{{}, {Args: []string{"x"}, Timeout: -1}, {Args: []string{"x"}, MaxOutput: -1}} {
		if _, err := r.Exec(t.Context(), "c1", wrong); err == nil {
			t.Errorf("Exec(%+v): want an error", wrong)
		}
	}
}

func TestSandbox(t *testing.T) {
	f := &fake{sandboxes: map[string]*criv1.PodSandboxStatus{
		"s1": {
			Id:      "s1",
			Network: &criv1.PodSandboxNetworkStatus{Ip: "10.0.0.1", AdditionalIps: []*criv1.PodIP{{Ip: "fd00::1"}}},
		},
		"s2": {Id: "s2", State: criv1.PodSandboxState_SANDBOX_NOTREADY},
	}}
	r, _ := start(t, f, cri.Options{})
	want := map[string]cri.Sandbox{
		"s1": {IPs: []string{"10.0.0.1", "fd00::1"}},
		"s2": {},
	}
	for id, want := range want {
		got, err := r.Sandbox(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	_, err := r.Sandbox(t.Context(), "s3")
	wantError(t, err, cri.ErrNotFound)
}

func TestVersion(t *testing.T) {
	f := &fake{name: "cri-o"}
	r, path := start(t, f, cri.Options{})
	got, err := r.Version(t.Context())
	if want := (cri.Version{Name: "cri-o", Version: "v2.4.2", API: "v1"}); err != nil || got != want {
		t.Errorf("Version = %+v, %v, want %+v", got, err, want)
	}
	if r.Name() != "cri-o" || r.Endpoint() != "unix://"+path {
		t.Errorf("it is %s at %s", r.Name(), r.Endpoint())
	}
	if asked := last[*criv1.VersionRequest](f).Version; asked != "v1" {
		t.Errorf("asked for CRI %q", asked)
	}
}
