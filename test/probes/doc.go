// Package probes tests PodProbeMarkers as a whole: the reconcilers of markers and of NodePodProbes, and a stand-in for
// the daemons, over objects in memory and before an API server.
package probes
