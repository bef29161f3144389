
//: if assistant
/**
 * The secret that identifies the user to the service. Without given it makes one, once, and stores it in a file that
 * only the user can read.
 */
private fun userOf(app: String, given: String?): String {
    if (given != null) {
        if (isUser(given)) return given
        throw assistantError("invalid_value", "user must be 32 lower-case hexadecimal digits", 400)
    }
    val file = File(File(dataDir(), app.replace(Regex("[^A-Za-z0-9_-]"), "_")), "glasses-user")
    try {
        return storedSecret(file)
    } catch (e: IOException) {
        throw assistantError("no_storage", "the user's secret cannot be stored: ${e.message}")
    }
}

/** Returns the secret that is stored in a file: 32 random hexadecimal digits, made if there are none yet. */
private fun storedSecret(file: File): String = readUser(file) ?: makeUser(file)

private fun isUser(secret: String) = Regex("[0-9a-f]{32}").matches(secret)

private fun dataDir(): File {
    val system = System.getProperty("os.name") ?: ""
    val home = File(System.getProperty("user.home") ?: "")
    fun set(name: String) = System.getenv(name)?.ifEmpty { null }?.let { File(it) }
    return when {
        system.startsWith("Windows") -> set("LOCALAPPDATA") ?: File(home, "AppData/Local")
        system.startsWith("Mac") -> File(home, "Library/Application Support")
        else -> set("XDG_DATA_HOME") ?: File(home, ".local/share")
    }
}

private fun readUser(file: File): String? = if (file.exists()) file.readText().trim().takeIf { isUser(it) } else null

private fun makeUser(file: File): String {
    val secret = ByteArray(16).also { SecureRandom().nextBytes(it) }.joinToString("") { String.format("%02x", it) }
    file.parentFile.mkdirs()
    // The file gets its name in one step, so that no other process reads a part.
    val own = File("$file.${secret.take(8)}").toPath()
    val mode = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))
    val isPosix = "posix" in own.fileSystem.supportedFileAttributeViews()
    if (isPosix) Files.createFile(own, mode) else Files.createFile(own)
    Files.write(own, secret.toByteArray())
    val isFirst = runCatching { Files.createLink(file.toPath(), own) }.isSuccess // otherwise the other's secret counts
    if (!isFirst && readUser(file) == null) { // an unusable file, or a file system without links
        Files.move(own, file.toPath(), StandardCopyOption.REPLACE_EXISTING)
    }
    Files.deleteIfExists(own)
    return readUser(file) ?: throw IOException("cannot write $file")
}
//: end
