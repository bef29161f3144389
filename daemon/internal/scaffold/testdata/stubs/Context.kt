package android.content

import java.io.File

abstract class Context {
    abstract val noBackupFilesDir: File
}
