local function answer(status, message) return { status = status, message = message } end
local status, spec = obj.status or {}, obj.spec or {}
if (status.observedGeneration or 0) < (obj.metadata.generation or 1) then
  return answer("Progressing", "the spec has not been observed yet")
end
for _, c in ipairs(status.conditions or {}) do
  if c.status == "True" and (c.type == "Stalled" or c.type == "FailedScale" or c.type == "FailedUpdate") then
    return answer("Degraded", c.type .. ": " .. (c.message or c.reason or ""))
  end
end
local rolling = (spec.updateStrategy or {}).rollingUpdate or {}
if rolling.paused then return answer("Suspended", "the rollout is paused") end
local wanted = status.desiredNumberScheduled or 0
if (status.numberAvailable or 0) < wanted then
  return answer("Progressing", (status.numberAvailable or 0) .. " of " .. wanted .. " pods are available")
end
if (spec.updateStrategy or {}).type == "OnDelete" then return answer("Healthy", "pods are updated when they are deleted") end
local kept = tonumber(rolling.partition or 0)
if kept == nil or rolling.selector then
  return answer("Healthy", (status.updatedNumberScheduled or 0) .. " pods are updated, as far as the rollout goes")
end
local due = math.max(wanted - kept, 0)
if (status.updatedNumberScheduled or 0) < due then
  return answer("Progressing", (status.updatedNumberScheduled or 0) .. " of " .. due .. " pods are updated")
end
return answer("Healthy", due < wanted and "the partition keeps " .. (wanted - due) .. " pods" or "")
