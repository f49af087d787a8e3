package podprobe

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/note"
	"github.com/kruisekit/kruisekit/write"
)

const (
	// MaxContent bounds what the probes of a node take in its NodePodProbe, in bytes. An API server stores 1.5 MiB, and
	// the results need as much again.
	MaxContent = 512 << 10
	// leastProbe is what the result of a probe takes at least, so that a node has 1024 probes at most.
	leastProbe = 512
)

// bound leaves out probes where a node would have too much. Namespaces that take less than their share lose nothing.
func bound(all []v1alpha1.PodProbe, notes []note.Note) ([]v1alpha1.PodProbe, []note.Note) {
	sizes, total := map[string]int{}, 0
	for i := range all {
		n := sizeOfEntry(&all[i])
		sizes[all[i].Namespace] += n
		total += n
	}
	if total <= MaxContent {
		return all, notes
	}
	left := shares(sizes, MaxContent)
	var kept []v1alpha1.PodProbe
	for i := range all {
		p := all[i]
		left[p.Namespace] -= sizeOfPod(&p)
		var probes []v1alpha1.ContainerProbe
		for j := range p.Probes {
			if left[p.Namespace] -= sizeOf(&p.Probes[j]); left[p.Namespace] >= 0 {
				probes = append(probes, p.Probes[j])
				continue
			}
			if marker, _, ok := MarkerOf(p.Probes[j].Name); ok {
				notes = append(notes, newNote(NoteFull, p.Namespace+"/"+marker,
					"not all pods of a node are probed, because the probes of the namespace take too much there"))
			}
		}
		if p.Probes = probes; len(probes) > 0 {
			kept = append(kept, p)
		}
	}
	return kept, notes
}

// shares divides what there is: the smallest get what they ask for, and the others the same amount.
func shares(sizes map[string]int, total int) map[string]int {
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[a], sizes[b]), cmp.Compare(a, b))
	})
	left := map[string]int{}
	for i, name := range names {
		left[name] = min(sizes[name], total/(len(names)-i))
		total -= left[name]
	}
	return left
}

func sizeOfEntry(p *v1alpha1.PodProbe) int {
	n := sizeOfPod(p)
	for i := range p.Probes {
		n += sizeOf(&p.Probes[i])
	}
	return n
}

// sizeOfPod counts the names twice: the results repeat them.
func sizeOfPod(p *v1alpha1.PodProbe) int {
	return 2 * (len(p.Name) + len(p.Namespace) + len(p.UID) + len(p.IP))
}

// sizeOf is that of the JSON which an API server stores.
func sizeOf(p *v1alpha1.ContainerProbe) int {
	n := 2*write.EncodedLen(p.Name) + write.EncodedLen(p.ContainerName)
	if exec := p.Probe.Exec; exec != nil {
		for _, text := range exec.Command {
			n += write.EncodedLen(text) + 1
		}
	}
	if get := p.Probe.HTTPGet; get != nil {
		n += write.EncodedLen(get.Path) + write.EncodedLen(get.Host) + write.EncodedLen(get.Port.StrVal)
		for _, h := range get.HTTPHeaders {
			n += write.EncodedLen(h.Name) + write.EncodedLen(h.Value) + 18
		}
	}
	if socket := p.Probe.TCPSocket; socket != nil {
		n += write.EncodedLen(socket.Host) + write.EncodedLen(socket.Port.StrVal)
	}
	if grpc := p.Probe.GRPC; grpc != nil && grpc.Service != nil {
		n += write.EncodedLen(*grpc.Service)
	}
	return max(n, leastProbe)
}
