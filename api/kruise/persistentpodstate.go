package kruise

// InjectedPersistentPodStateKey is the annotation of a pod that was steered to its former topology, with the name of
// the PersistentPodState that remembered it.
const InjectedPersistentPodStateKey = "kruise.io/injected-persistent-pod-state"
