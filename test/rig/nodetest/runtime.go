package nodetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

// Name of the runtime.
func (*Node) Name() string { return Engine }

// Containers that a query selects, the newest first.
func (n *Node) Containers(_ context.Context, q cri.Query) ([]cri.Container, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls["Containers"]++
	var found []cri.Container
	for _, c := range slices.Backward(n.containers) {
		if (q.PodUID == "" || q.PodUID == c.PodUID()) && (q.ID == "" || q.ID == c.ID) && (q.Name == "" || q.Name == c.Name) {
			found = append(found, c)
		}
	}
	return found, nil
}

// Sandbox has the IP of this machine.
func (n *Node) Sandbox(_ context.Context, id string) (cri.Sandbox, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls["Sandbox"]++
	return cri.Sandbox{IPs: []string{"127.0.0.1"}}, nil
}

// Exec runs env, and what a Way says.
func (n *Node) Exec(ctx context.Context, id string, c cri.Command) (cri.Output, error) {
	n.mu.Lock()
	name, err := n.named(id, "Exec "+c.Args[0])
	n.mu.Unlock()
	if err != nil {
		return cri.Output{}, err
	}
	way := n.ways[name]
	if c.Args[0] == "env" && !way.NoEnv {
		end := "\n"
		if len(c.Args) > 1 {
			end = "\x00"
		}
		return cri.Output{Stdout: []byte(n.environment(id, end))}, nil
	}
	if way.Exec == nil {
		return cri.Output{ExitCode: 127}, nil
	}
	return way.Exec(ctx, c.Args)
}

func (n *Node) environment(id, end string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var text strings.Builder
	fmt.Fprint(&text, "PATH=/bin", end)
	for name, value := range n.environments[id] {
		fmt.Fprint(&text, name, "=", value, end)
	}
	return text.String()
}

// Stop ends a container.
func (n *Node) Stop(ctx context.Context, id string, grace time.Duration) error {
	n.mu.Lock()
	name, err := n.named(id, "Stop")
	n.mu.Unlock()
	if err != nil {
		return err
	}
	if stop := n.ways[name].Stop; stop != nil {
		if err := stop(ctx); err != nil {
			return err
		}
	}
	if n.End(id, 143) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.stopped = append(n.stopped, Stopped{Name: name, ID: id, At: time.Now(), Grace: grace})
	}
	return nil
}

// named counts a call about a container, and gives its name.
func (n *Node) named(id, method string) (string, error) {
	n.calls[method]++
	i := n.find(id)
	if i < 0 {
		return "", cri.ErrNotFound
	}
	return n.containers[i].Name, nil
}
