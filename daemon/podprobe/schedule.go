package podprobe

import (
	"cmp"
	"context"
	"hash/fnv"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/internal/podprobe"
)

// schedule is when probes run. It has no clock and no lock of its own, and runs nothing.
type schedule struct {
	started time.Time
	// most is how many run at the same time, and mostPerNamespace how many of them are of one namespace.
	most, mostPerNamespace int
	probes                 map[identity]*probe
	running                int
	// busy counts the probes that run, by namespace.
	busy map[string]int
}

func newSchedule(started time.Time) *schedule {
	return &schedule{
		started: started, most: most, mostPerNamespace: most / 4, probes: map[identity]*probe{}, busy: map[string]int{},
	}
}

// identity of a probe. Another container is another probe.
type identity struct{ uid, container, name string }

func (id identity) key() podprobe.Key { return podprobe.Key{UID: id.uid, Name: id.name} }

// probe is one of the node.
type probe struct {
	identity

	namespace, pod, ip string
	asked              v1alpha1.ContainerProbe
	memory             podprobe.Memory
	due                time.Time
	running            bool
	// cancel ends the run that is under way.
	cancel context.CancelFunc
}

// sync makes the schedule that of a spec. Probes that are new go on with the states of the status.
func (s *schedule) sync(n *v1alpha1.NodePodProbe, now time.Time) {
	wanted := map[identity]bool{}
	var recalled map[podprobe.Key]*v1alpha1.ContainerProbeState
	for i := range n.Spec.PodProbes {
		pod := &n.Spec.PodProbes[i]
		for j := range pod.Probes {
			id := identity{pod.UID, pod.Probes[j].ContainerName, pod.Probes[j].Name}
			if wanted[id] {
				continue
			}
			wanted[id] = true
			p := s.probes[id]
			if p == nil {
				if recalled == nil {
					recalled = podprobe.States(&n.Status)
				}
				p = s.add(id, &pod.Probes[j], now)
				if state := recalled[id.key()]; state != nil {
					p.memory = podprobe.Recall(*state)
				}
			}
			p.namespace, p.pod, p.ip = pod.Namespace, pod.Name, pod.IP
			if period := podprobe.Period(&pod.Probes[j]); period < podprobe.Period(&p.asked) && p.due.After(now.Add(period)) {
				p.due = now.Add(period)
			}
			p.asked = pod.Probes[j]
		}
	}
	for id, p := range s.probes {
		if wanted[id] {
			continue
		}
		delete(s.probes, id)
		if p.cancel != nil {
			p.cancel()
		}
	}
}

// add has a new probe run at once. While the daemon has been up for less than the period, the first runs of all probes
// are spread over it.
func (s *schedule) add(id identity, asked *v1alpha1.ContainerProbe, now time.Time) *probe {
	p := &probe{identity: id, asked: *asked, due: now}
	if period := podprobe.Period(asked); now.Sub(s.started) < period {
		h := fnv.New32a()
		_, _ = h.Write([]byte(id.uid + id.container + id.name))
		p.due = now.Add(time.Duration(h.Sum32()%1000) * (period / 1000))
	}
	s.probes[id] = p
	return p
}

// next returns the probe that is to run now; nil for none, and when to ask again: zero for when a run has ended or the
// spec changed.
func (s *schedule) next(now time.Time) (*probe, time.Time) {
	var best *probe
	var later time.Time
	for _, p := range s.probes {
		switch {
		case p.running:
		case p.due.After(now):
			if later.IsZero() || p.due.Before(later) {
				later = p.due
			}
		case s.running >= s.most || s.busy[p.namespace] >= s.mostPerNamespace:
		case best == nil || s.compare(p, best) < 0:
			best = p
		}
	}
	return best, later
}

// compare orders probes that wait: by how many their namespaces run, then by how long they wait.
func (s *schedule) compare(a, b *probe) int {
	return cmp.Or(
		cmp.Compare(s.busy[a.namespace], s.busy[b.namespace]), a.due.Compare(b.due),
		cmp.Compare(a.uid, b.uid), cmp.Compare(a.name, b.name), cmp.Compare(a.container, b.container),
	)
}

// run is a run of a probe, as it was asked for at its start.
type run struct {
	probe     *probe
	namespace string
	ip        string
	asked     v1alpha1.ContainerProbe
	memory    podprobe.Memory
}

// begin takes note of a run.
func (s *schedule) begin(p *probe, cancel context.CancelFunc) *run {
	p.running, p.cancel = true, cancel
	s.running++
	s.busy[p.namespace]++
	return &run{probe: p, namespace: p.namespace, ip: p.ip, asked: p.asked, memory: p.memory}
}

// end takes note of the end of a run, and reports whether its result is new. A result of a probe that changed meanwhile
// is dropped.
func (s *schedule) end(r *run, now time.Time) bool {
	p := r.probe
	p.running, p.cancel = false, nil
	s.running--
	if s.busy[r.namespace]--; s.busy[r.namespace] == 0 {
		delete(s.busy, r.namespace)
	}
	period := podprobe.Period(&p.asked)
	if p.due = p.due.Add(period); !p.due.After(now) {
		p.due = now.Add(period - now.Sub(p.due)%period)
	}
	if s.probes[p.identity] != p ||
		!apiequality.Semantic.DeepEqual(p.asked.Probe.ProbeHandler, r.asked.Probe.ProbeHandler) || p.ip != r.ip {
		return false
	}
	was := p.memory
	p.memory = r.memory
	return was.State != p.memory.State || was.Message != p.memory.Message || !was.At.Equal(p.memory.At)
}

// findings are the results of all probes.
func (s *schedule) findings() map[podprobe.Key]podprobe.Memory {
	all := map[podprobe.Key]podprobe.Memory{}
	for id, p := range s.probes {
		if p.memory.State != "" {
			all[id.key()] = p.memory
		}
	}
	return all
}
