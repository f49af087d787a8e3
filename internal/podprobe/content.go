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
// marker belong to another controller, and stay as long as their pod. What is asked already keeps its order.
func Desired(n Node) Content {
	d := desired{markers: n.Markers, asked: map[identity]int{}}
	for i := range n.Asked {
		if _, twice := d.asked[identityOf(&n.Asked[i])]; !twice {
			d.asked[identityOf(&n.Asked[i])] = i
		}
	}
	var all []v1alpha1.PodProbe
	for _, pod := range n.Pods {
		if p := d.entry(pod, n.Asked); len(p.Probes) > 0 {
			all = append(all, p)
		}
	}
	position := func(p *v1alpha1.PodProbe) int {
		if i, asked := d.asked[identityOf(p)]; asked {
			return i
		}
		return len(n.Asked)
	}
	slices.SortFunc(all, func(a, b v1alpha1.PodProbe) int {
		return cmp.Or(cmp.Compare(position(&a), position(&b)), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	content := Content{}
	content.PodProbes, d.notes = bound(all, d.notes)
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

// desired is a call of Desired.
type desired struct {
	markers []*v1alpha1.PodProbeMarker
	// asked are the indexes of what is asked already.
	asked map[identity]int
	notes []note.Note
}

// entry returns what is probed in a pod, without probes where nothing is.
func (d *desired) entry(pod *corev1.Pod, all []v1alpha1.PodProbe) v1alpha1.PodProbe {
	p := v1alpha1.PodProbe{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID), IP: pod.Status.PodIP}
	var asked []v1alpha1.ContainerProbe
	if i, ok := d.asked[identityOf(&p)]; ok {
		asked, p.IP = all[i].Probes, cmp.Or(p.IP, all[i].IP)
	}
	if IsProbed(pod) {
		p.Probes = d.probes(pod, asked)
	}
	for i := range asked {
		if _, _, ours := MarkerOf(asked[i].Name); !ours && IsActive(pod) {
			p.Probes = append(p.Probes, asked[i])
		}
	}
	position := func(p *v1alpha1.ContainerProbe) int {
		if i := indexOf(asked, p.Name); i >= 0 {
			return i
		}
		return len(asked)
	}
	slices.SortStableFunc(p.Probes, func(a, b v1alpha1.ContainerProbe) int {
		return cmp.Compare(position(&a), position(&b))
	})
	return p
}

func indexOf(probes []v1alpha1.ContainerProbe, name string) int {
	return slices.IndexFunc(probes, func(p v1alpha1.ContainerProbe) bool { return p.Name == name })
}

// probes returns those that the markers of a pod ask for. One whose port cannot be resolved stays as it is.
func (d *desired) probes(pod *corev1.Pod, asked []v1alpha1.ContainerProbe) (all []v1alpha1.ContainerProbe) {
	for _, m := range Selecting(pod, d.markers) {
		for i := range m.Spec.Probes {
			p := &m.Spec.Probes[i]
			name, object := NameOf(m.Name, p.Name), m.Namespace+"/"+m.Name
			if indexOf(all, name) >= 0 || p.Name == "" || strings.Contains(p.Name, separator) || !canRun(&p.Probe) {
				d.notes = append(d.notes, newNote(NoteInvalid, object, "probe "+p.Name+" is not run, because it is invalid"))
				continue
			}
			resolved, err := resolve(pod, p)
			if err != nil {
				d.notes = append(d.notes, newNote(NotePort, object, "probe "+p.Name+" is not run as it is: "+err.Error()))
				was := indexOf(asked, name)
				if was < 0 {
					continue
				}
				resolved = asked[was].Probe
			}
			all = append(all, v1alpha1.ContainerProbe{Name: name, ContainerName: p.ContainerName, Probe: resolved})
		}
	}
	return all
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
