local function answer(status, message) return { status = status, message = message } end
local status = obj.status or {}
if (status.failed or 0) > 0 then return answer("Degraded", status.failed .. " images have failed") end
if (status.pulling or 0) > 0 then return answer("Progressing", status.pulling .. " images are pulled") end
return answer("Healthy", (status.succeeded or 0) .. " images are there")
