package podprobe

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kruisekit/kruisekit/api/apps/v1alpha1"
	"github.com/kruisekit/kruisekit/note"
)

// Node is a node with its pods. Its objects are only read.
type Node struct {
	// Pods of the node.
	Pods []*corev1.Pod
	// Markers of the namespaces of the pods. More do no harm.
	Markers []*v1alpha1.PodProbeMarker
	// Asked is what the NodePodProbe has now.
	Asked []v1alpha1.PodProbe
}

// Content is what a NodePodProbe is to have.
type Content struct {
	PodProbes []v1alpha1.PodProbe
	// Changed reports whether that differs from what it has.
	Changed bool
	// Notes are about the probes that are left out.
	Notes []note.Note
}

// Desired returns what a node probes: the probes of all markers that select one of its pods. Probes whose names have no
// marker belong to another controller, and stay as long as their pod.
func Desired(n Node) Content {
	d := desired{markers: compile(n.Markers), asked: map[identity]*v1alpha1.PodProbe{}}
	for i := range n.Asked {
		if id := identityOf(&n.Asked[i]); d.asked[id] == nil {
			d.asked[id] = &n.Asked[i]
		}
	}
	wanted := map[identity]v1alpha1.PodProbe{}
	for _, pod := range n.Pods {
		if p := d.entry(pod); len(p.Probes) > 0 {
			wanted[identityOf(&p)] = p
		}
	}
	content := Content{}
	for i := range n.Asked {
		id := identityOf(&n.Asked[i])
		if p, ok := wanted[id]; ok {
			content.PodProbes = append(content.PodProbes, p)
			delete(wanted, id)
		}
	}
	content.PodProbes = append(content.PodProbes, sorted(wanted)...)
	content.PodProbes, d.notes = bound(content.PodProbes, d.notes)
	slices.SortFunc(d.notes, func(a, b note.Note) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Text, b.Text))
	})
	content.Notes = slices.Compact(d.notes)
	content.Changed = !apiequality.Semantic.DeepEqual(content.PodProbes, n.Asked)
	return content
}

// identity of a pod.
type identity struct{ namespace, name, uid string }

func identityOf(p *v1alpha1.PodProbe) identity { return identity{p.Namespace, p.Name, p.UID} }

func sorted(all map[identity]v1alpha1.PodProbe) []v1alpha1.PodProbe {
	list := make([]v1alpha1.PodProbe, 0, len(all))
	for _, p := range all {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b v1alpha1.PodProbe) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return list
}

// desired is a call of Desired.
type desired struct {
	markers compiled
	asked   map[identity]*v1alpha1.PodProbe
	notes   []note.Note
}

// entry returns what is probed in a pod, without probes where nothing is.
func (d *desired) entry(pod *corev1.Pod) v1alpha1.PodProbe {
	p := v1alpha1.PodProbe{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID), IP: pod.Status.PodIP}
	asked := d.asked[identityOf(&p)]
	if asked == nil {
		asked = &v1alpha1.PodProbe{}
	}
	p.IP = cmp.Or(p.IP, asked.IP)
	wanted, order := map[string]v1alpha1.ContainerProbe{}, []string(nil)
	if IsProbed(pod) {
		wanted, order = d.probes(pod, asked)
	}
	for i := range asked.Probes {
		had := &asked.Probes[i]
		if w, ok := wanted[had.Name]; ok {
			p.Probes = append(p.Probes, w)
			delete(wanted, had.Name)
		} else if _, _, ours := MarkerOf(had.Name); !ours && IsActive(pod) {
			p.Probes = append(p.Probes, *had)
		}
	}
	for _, name := range order {
		if w, ok := wanted[name]; ok {
			p.Probes = append(p.Probes, w)
		}
	}
	return p
}

// probes returns those that the markers of a pod ask for, and the order of their names. One whose port cannot be
// resolved stays as it is.
func (d *desired) probes(
	pod *corev1.Pod, asked *v1alpha1.PodProbe,
) (wanted map[string]v1alpha1.ContainerProbe, order []string) {
	wanted = map[string]v1alpha1.ContainerProbe{}
	for _, m := range d.markers.selecting(pod) {
		for i := range m.Spec.Probes {
			p := &m.Spec.Probes[i]
			name, object := NameOf(m.Name, p.Name), m.Namespace+"/"+m.Name
			if _, twice := wanted[name]; twice || p.Name == "" || strings.Contains(p.Name, separator) || !canRun(&p.Probe) {
				d.notes = append(d.notes, newNote(NoteInvalid, object, "probe "+p.Name+" is not run, because it is invalid"))
				continue
			}
			resolved, err := resolve(pod, p)
			if err != nil {
				d.notes = append(d.notes, newNote(NotePort, object, "probe "+p.Name+" is not run as it is: "+err.Error()))
				was := slices.IndexFunc(asked.Probes, func(c v1alpha1.ContainerProbe) bool { return c.Name == name })
				if was < 0 {
					continue
				}
				resolved = asked.Probes[was].Probe
			}
			wanted[name] = v1alpha1.ContainerProbe{Name: name, ContainerName: p.ContainerName, Probe: resolved}
			order = append(order, name)
		}
	}
	return wanted, order
}

// canRun reports whether a probe has one handler, which asks its pod.
func canRun(p *v1alpha1.ContainerProbeSpec) bool {
	n := 0
	for _, has := range []bool{p.Exec != nil, p.HTTPGet != nil, p.TCPSocket != nil, p.GRPC != nil} {
		if has {
			n++
		}
	}
	return n == 1 && !hasHost(p)
}

// hasHost reports whether a probe asks another host than its pod. A daemon has the network of its node, and must not.
func hasHost(p *v1alpha1.ContainerProbeSpec) bool {
	return p.HTTPGet != nil && p.HTTPGet.Host != "" || p.TCPSocket != nil && p.TCPSocket.Host != ""
}
