package spread

// Partition returns how many pods of a subset stay on older revisions: the number that the user wrote for the subset,
// and at most its replicas.
func Partition(partitions map[string]int32, subset string, replicas int32) int32 {
	return max(0, min(partitions[subset], replicas))
}
