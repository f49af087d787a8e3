package podprobe

import (
	"encoding/json"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/note"
)

const (
	// MaxContent bounds what the probes of a node take in its NodePodProbe, in bytes. An API server stores 1.5 MiB, and
	// the results need as much again.
	MaxContent = 512 << 10
	// leastProbe is what the result of a probe takes at least, so that a node has 1024 probes at most.
	leastProbe = 512
)

// bound leaves out probes where a node would have too much. A namespace takes at most half of it.
func bound(all []v1alpha1.PodProbe, notes []note.Note) ([]v1alpha1.PodProbe, []note.Note) {
	total, of := 0, map[string]int{}
	var kept []v1alpha1.PodProbe
	for i := range all {
		p := all[i]
		var probes []v1alpha1.ContainerProbe
		for j := range p.Probes {
			n := sizeOf(&p, &p.Probes[j])
			if total+n <= MaxContent && of[p.Namespace]+n <= MaxContent/2 {
				total, of[p.Namespace] = total+n, of[p.Namespace]+n
				probes = append(probes, p.Probes[j])
			} else if marker, _, ok := MarkerOf(p.Probes[j].Name); ok {
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

// sizeOf is that of the JSON which an API server stores. The result repeats the names.
func sizeOf(pod *v1alpha1.PodProbe, p *v1alpha1.ContainerProbe) int {
	data, err := json.Marshal(p)
	if err != nil {
		return leastProbe // the write fails in the same way
	}
	names := 2 * (len(pod.Name) + len(pod.Namespace) + len(pod.UID) + len(pod.IP))
	return max(len(data)+encodedLen(p.Name)+names, leastProbe)
}
