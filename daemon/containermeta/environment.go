package containermeta

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kruisekit/kruisekit/daemon/cri"
)

const (
	// readWithin is how long a container may take to print its environment.
	readWithin = 3 * time.Second
	// mostEnvironment is how much of it is read. Linux gives a process no more, by default.
	mostEnvironment = 2 << 20
)

// read reads the environments of containers into memory, unless that failed a moment ago.
func (p *pass) read(ctx context.Context, pod *corev1.Pod, ids []string) {
	for _, id := range ids {
		t := p.unread[id]
		switch {
		case t.failed >= mostReads:
			continue
		case t.next.After(p.now):
			p.again(t.next)
			continue
		}
		all, err := p.environmentOf(ctx, id)
		if err == nil {
			p.environments[id] = fed(pod, all)
			delete(p.unread, id)
			continue
		}
		t = t.fail(p.now, longestRead)
		if p.unread[id] = t; t.failed < mostReads {
			p.again(t.next)
		}
		log.FromContext(ctx).Info("Environment of a container cannot be read",
			"container", id, "reason", err.Error(), "failures", t.failed)
	}
}

// environmentOf asks a container for the environment that its processes have.
func (p *pass) environmentOf(ctx context.Context, id string) (map[string]string, error) {
	_, id, _ = strings.Cut(id, "://")
	var err error
	for _, how := range []struct {
		args []string
		end  string
	}{{[]string{"env", "-0"}, "\x00"}, {[]string{"env"}, "\n"}} {
		var out cri.Output
		out, err = p.runtime.Exec(ctx, id, cri.Command{Args: how.args, Timeout: readWithin, MaxOutput: mostEnvironment})
		switch {
		case err != nil:
			continue
		case out.Truncated:
			return nil, fmt.Errorf("it is longer than %d bytes", mostEnvironment)
		case out.ExitCode != 0:
			err = fmt.Errorf("%s ended with exit code %d", strings.Join(how.args, " "), out.ExitCode)
			continue
		}
		return parse(out.Stdout, how.end), nil
	}
	return nil, err
}

// parse reads what env has written. A line without a name belongs to the value before it.
func parse(output []byte, end string) map[string]string {
	all, last := map[string]string{}, ""
	for entry := range bytes.SplitSeq(bytes.TrimSuffix(output, []byte(end)), []byte(end)) {
		name, value, ok := strings.Cut(string(entry), "=")
		if !ok {
			if last != "" {
				all[last] += end + string(entry)
			}
			continue
		}
		all[name], last = value, name
	}
	return all
}

// feeds are the values of labels and annotations that a pod's containers have in their environments.
func feeds(pod *corev1.Pod) string {
	var all strings.Builder
	for i := range pod.Spec.Containers {
		for _, e := range pod.Spec.Containers[i].Env {
			if e.ValueFrom == nil || e.ValueFrom.FieldRef == nil {
				continue
			}
			path := e.ValueFrom.FieldRef.FieldPath
			from := pod.Labels
			if strings.HasPrefix(path, "metadata.annotations") {
				from = pod.Annotations
			}
			_, key, _ := strings.Cut(path, "['")
			value, there := from[strings.TrimSuffix(key, "']")]
			fmt.Fprintf(&all, "%q %q %v\n", path, value, there)
		}
	}
	return all.String()
}

// fed returns the variables of an environment that may come from the pod. The reconciler keeps no others, which may be
// secret.
func fed(pod *corev1.Pod, all map[string]string) map[string]string {
	some := map[string]string{}
	for i := range pod.Spec.Containers {
		for name, value := range all {
			if slices.ContainsFunc(pod.Spec.Containers[i].Env, func(e corev1.EnvVar) bool {
				return e.Name == name && e.ValueFrom != nil && e.ValueFrom.FieldRef != nil
			}) {
				some[name] = value
			}
		}
	}
	return some
}
