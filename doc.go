// Package kruisekit is the root of a library of Kubernetes workload primitives that is wire-compatible with the
// OpenKruise APIs. The package has no code; this page is the map of the packages.
//
// # Values of the API
//
//   - [github.com/kruisekit/kruisekit/api/apps/v1beta1]: the kinds of apps.kruise.io in their storage version.
//   - [github.com/kruisekit/kruisekit/api/apps/v1alpha1]: their older version, and the kinds that have no newer one.
//   - [github.com/kruisekit/kruisekit/api/policy/v1beta1] and [github.com/kruisekit/kruisekit/api/policy/v1alpha1]:
//     PodUnavailableBudget.
//   - [github.com/kruisekit/kruisekit/api/kruise]: keys written on pods, and structs that several kinds share.
//   - [github.com/kruisekit/kruisekit/config/crd]: the CustomResourceDefinitions as Go values.
//   - [github.com/kruisekit/kruisekit/config/crd/storage]: rewrites stored objects in the version that is stored now.
//   - [github.com/kruisekit/kruisekit/config/protection]: the admission policies of deletion protection as Go values.
//
// # Deciding
//
//   - [github.com/kruisekit/kruisekit/note]: the reasons that plans give, and the one to show.
//   - [github.com/kruisekit/kruisekit/write]: the writes of a plan as values.
//   - [github.com/kruisekit/kruisekit/revision]: the history of a pod template: whether a template is new, and its
//     name.
//   - [github.com/kruisekit/kruisekit/lifecycle]: hooks that hold a pod before and after a change, and readiness that
//     several writers share.
//   - [github.com/kruisekit/kruisekit/scale]: how many to create, delete and update, which ones, in which order.
//   - [github.com/kruisekit/kruisekit/inplace]: changes made in running pods.
//   - [github.com/kruisekit/kruisekit/workload]: all of these in one pass over the pods of a workload.
//   - [github.com/kruisekit/kruisekit/workload/native]: the same for the pods of StatefulSets and DaemonSets of
//     Kubernetes.
//   - [github.com/kruisekit/kruisekit/workload/eligible]: which nodes get a pod where each node gets one.
//   - [github.com/kruisekit/kruisekit/launch]: containers of a pod that start one after the other.
//   - [github.com/kruisekit/kruisekit/imagepull]: which images are pulled ahead, where, and how.
//   - [github.com/kruisekit/kruisekit/containerrestart]: which containers of running pods restart, and how.
//   - [github.com/kruisekit/kruisekit/pub]: whether one more pod may become unavailable, by deletion, eviction, update
//     or resize.
//   - [github.com/kruisekit/kruisekit/spread]: how many replicas each zone or node pool gets, and which of them are
//     unschedulable.
//   - [github.com/kruisekit/kruisekit/sidecar]: which sidecars a new pod gets, and the pod with them.
//   - [github.com/kruisekit/kruisekit/protection]: which deletions the label policy.kruise.io/delete-protection
//     refuses.
//
// # Writing
//
//   - [github.com/kruisekit/kruisekit/driver]: the protocol of a pass, and what runs it.
//   - [github.com/kruisekit/kruisekit/driver/runtimeclient] and [github.com/kruisekit/kruisekit/driver/clientgo]: the
//     writes of a pass, sent with the client of controller-runtime or of client-go.
//   - [github.com/kruisekit/kruisekit/ledger]: a controller's own writes, read back while the cache lags.
//
// # Reconciling
//
//   - [github.com/kruisekit/kruisekit/controllers]: the list of all of them, for a manager that wants all or some.
//   - [github.com/kruisekit/kruisekit/controllers/broadcastjob]: BroadcastJobs, for a manager of your own.
//   - [github.com/kruisekit/kruisekit/controllers/cloneset]: CloneSets, for a manager of your own.
//   - [github.com/kruisekit/kruisekit/controllers/daemonset]: DaemonSets with in-place updates, surge and partition.
//   - [github.com/kruisekit/kruisekit/controllers/containerrecreaterequest]: requests to restart containers of a pod.
//   - [github.com/kruisekit/kruisekit/controllers/advancedcronjob]: Jobs, BroadcastJobs and ImageListPullJobs on a
//     schedule.
//   - [github.com/kruisekit/kruisekit/controllers/imagepulljob]: images pulled ahead of need, node by node.
//   - [github.com/kruisekit/kruisekit/controllers/workloadspread]: subsets of the pods of a workload.
//   - [github.com/kruisekit/kruisekit/controllers/imagelistpulljob]: a pull job for each image of a list.
//   - [github.com/kruisekit/kruisekit/controllers/native]: StatefulSets and DaemonSets of Kubernetes that ask for
//     updates in place by an annotation.
//   - [github.com/kruisekit/kruisekit/controllers/nodeimage]: what each node pulls ahead, kept in line with nodes and
//     jobs.
//   - [github.com/kruisekit/kruisekit/controllers/launchpriority]: containers of pods started in their order.
//   - [github.com/kruisekit/kruisekit/controllers/persistentpodstate]: where pods became ready, recorded for those that
//     follow.
//   - [github.com/kruisekit/kruisekit/controllers/podreadiness]: the first KruisePodReady condition of new pods.
//   - [github.com/kruisekit/kruisekit/controllers/sidecarterminator/finish]: sidecars that are stopped when the rest of
//     their pod has finished.
//   - [github.com/kruisekit/kruisekit/controllers/sidecarterminator]: stops the sidecars of finished pods.
//   - [github.com/kruisekit/kruisekit/controllers/podscope]: which pods API servers send to the webhook of pods.
//   - [github.com/kruisekit/kruisekit/controllers/podunavailablebudget]: how many pods of each budget may become
//     unavailable.
//   - [github.com/kruisekit/kruisekit/controllers/ephemeraljob]: ephemeral containers that run to their end in many
//     pods.
//   - [github.com/kruisekit/kruisekit/controllers/resourcedistribution]: copies of a Secret or a ConfigMap in many
//     namespaces.
//   - [github.com/kruisekit/kruisekit/controllers/sidecarset/rollout]: which running pods get a sidecar's new image,
//     and when.
//   - [github.com/kruisekit/kruisekit/controllers/sidecarset]: new images for the sidecars of running pods, and their
//     history.
//   - [github.com/kruisekit/kruisekit/controllers/nodepodprobe]: what each node probes, and pods marked with the
//     results.
//   - [github.com/kruisekit/kruisekit/controllers/podprobemarker]: status and deletion of PodProbeMarkers, and pods of
//     virtual nodes.
//   - [github.com/kruisekit/kruisekit/controllers/statefulset]: StatefulSets with in-place updates, and claims that
//     grow.
//   - [github.com/kruisekit/kruisekit/controllers/uniteddeployment]: one workload in each zone, with the replicas
//     divided.
//
// # Admission
//
//   - [github.com/kruisekit/kruisekit/webhooks]: the list of all of them.
//   - [github.com/kruisekit/kruisekit/webhooks/broadcastjob]: defaults and rules of BroadcastJobs.
//   - [github.com/kruisekit/kruisekit/webhooks/cloneset]: defaults and rules of CloneSets.
//   - [github.com/kruisekit/kruisekit/webhooks/daemonset]: defaults and rules of DaemonSets.
//   - [github.com/kruisekit/kruisekit/webhooks/deletion]: deletions of protected objects.
//   - [github.com/kruisekit/kruisekit/webhooks/disruption]: deletions, evictions and updates of pods under a budget.
//   - [github.com/kruisekit/kruisekit/webhooks/advancedcronjob]: defaults and rules of AdvancedCronJobs.
//   - [github.com/kruisekit/kruisekit/webhooks/imagepull]: defaults and rules of pull jobs and NodeImages.
//   - [github.com/kruisekit/kruisekit/webhooks/containerrecreaterequest]: what a request to restart containers takes
//     from its pod.
//   - [github.com/kruisekit/kruisekit/webhooks/kinds]: the machinery of the webhooks of kinds: a kind is a row.
//   - [github.com/kruisekit/kruisekit/webhooks/native]: the hold of Deployments for controllers/native.
//   - [github.com/kruisekit/kruisekit/webhooks/persistentpodstate]: the rules of PersistentPodStates.
//   - [github.com/kruisekit/kruisekit/webhooks/pod]: what new pods get: sidecars, readiness gates, an order of their
//     containers.
//   - [github.com/kruisekit/kruisekit/webhooks/podunavailablebudget]: the rules of PodUnavailableBudgets.
//   - [github.com/kruisekit/kruisekit/webhooks/podprobemarker]: the rules of PodProbeMarkers.
//   - [github.com/kruisekit/kruisekit/webhooks/ephemeraljob]: the rules of EphemeralJobs.
//   - [github.com/kruisekit/kruisekit/webhooks/resourcedistribution]: the rules of ResourceDistributions.
//   - [github.com/kruisekit/kruisekit/webhooks/sidecarset]: defaults, hashes and rules of SidecarSets.
//   - [github.com/kruisekit/kruisekit/webhooks/statefulset]: defaults and rules of StatefulSets.
//   - [github.com/kruisekit/kruisekit/webhooks/uniteddeployment]: defaults and rules of UnitedDeployments.
//   - [github.com/kruisekit/kruisekit/webhooks/workloadspread]: the rules of WorkloadSpreads, and what gives new pods
//     their subsets.
//   - [github.com/kruisekit/kruisekit/webhooks/conversion]: the webhook between the two versions of each kind.
//   - [github.com/kruisekit/kruisekit/webhooks/certificates]: serving certificates that several replicas create and
//     renew.
//   - [github.com/kruisekit/kruisekit/webhooks/serving]: a webhook server with limits for its clients.
//
// # On the node
//
//   - [github.com/kruisekit/kruisekit/daemon]: the list of all parts of a node daemon.
//   - [github.com/kruisekit/kruisekit/daemon/cri]: the container runtime of a node.
//   - [github.com/kruisekit/kruisekit/daemon/imagepull]: images pulled ahead, as the node's NodeImage asks for them.
//   - [github.com/kruisekit/kruisekit/daemon/containerrestart]: containers restarted, as requests ask for them.
//   - [github.com/kruisekit/kruisekit/daemon/containermeta]: the state of containers that in-place updates wait for.
//   - [github.com/kruisekit/kruisekit/daemon/podprobe]: probes of pods, as the node's NodePodProbe asks for them.
//   - [github.com/kruisekit/kruisekit/daemon/credentials]: the registry credentials that a node is configured with.
//
// # Programs
//
//   - [github.com/kruisekit/kruisekit/examples/embed]: a controller of your own on these packages, client-go alone.
//   - [github.com/kruisekit/kruisekit/examples/groups]: a controller of groups of a leader and workers, client-go
//     alone.
//   - [github.com/kruisekit/kruisekit/examples/leaderworker]: the same on controller-runtime, with restarts of groups.
//   - [github.com/kruisekit/kruisekit/examples/quorum]: a controller of a database that keeps its majority.
//   - [github.com/kruisekit/kruisekit/examples/roles]: a controller of a service of roles that roll independently.
//   - [github.com/kruisekit/kruisekit/examples/sidecars]: sidecars alone, in a manager of your own.
//   - [github.com/kruisekit/kruisekit/examples/handover]: a sidecar that can be upgraded hot.
//   - [github.com/kruisekit/kruisekit/examples/kruise-manager]: all controllers and webhooks in one process.
//   - [github.com/kruisekit/kruisekit/examples/kruise-daemon]: all that happens on a node in one process.
//
// # Test clusters
//
//   - [github.com/kruisekit/kruisekit/test/cluster]: a real API server, simulated nodes or real nodes, for tests.
//   - [github.com/kruisekit/kruisekit/test/containerd]: a real containerd without a cluster, and a registry with
//     faults.
//   - [github.com/kruisekit/kruisekit/test/podbench]: a namespace with a reconciler of pods, and a record of its
//     requests.
//   - [github.com/kruisekit/kruisekit/test/standin]: a scheduler and kubelets for an API server alone.
//   - [github.com/kruisekit/kruisekit/test/demo]: the rollout of make demo, in a cluster of its own.
//   - [github.com/kruisekit/kruisekit/test/bench]: the benchmarks of make bench, next to the limit of the API server.
//
// Imports point down only: api imports none of the others, and only tests import the test clusters.
// A package that decides takes values and returns a plan; it imports neither a client nor a clock.
package kruisekit
