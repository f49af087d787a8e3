// Package monitoring tests the files of config/monitoring: rules and dashboards ask for metrics that exist, and the metrics
// of objects are read where the schemas of the kinds have them.
package monitoring
