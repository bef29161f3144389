// Takes a photo when the capture button is pressed, and says why if it cannot.
import service.Glasses
import service.GlassesError
import service.Settings
import service.connect

private fun take(glasses: Glasses): String = try {
    val photo = glasses.photo(1280)
    "${photo.width} x ${photo.height}, ${photo.data.size} bytes of ${photo.mime}"
} catch (e: GlassesError) {
    when (e.code) {
        "permission_denied" -> "The camera is not allowed"
        "busy", "media_lost" -> "Please try again"
        else -> "No photo: ${e.message}"
    }
}

fun main() {
    val glasses = connect(Settings("Camera", "1.0", release = false))
    glasses.show(mapOf("type" to "text", "text" to "Press the capture button"))
    glasses.run { event ->
        if (event.type == "input" && event.payload["kind"] == "capture") glasses.show(mapOf("type" to "text", "text" to take(glasses)))
    }
}
